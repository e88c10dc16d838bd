// What a browser is called in the list of signed-in devices. A guess from what it says of itself, for people to tell
// their own devices apart; nothing may depend on it.

const BROWSERS: readonly [RegExp, string][] = [
  [/\bEdg(?:A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bSamsungBrowser\//, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const SYSTEMS: readonly [RegExp, string][] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "Mac"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** `Chrome, Linux`; empty when it says nothing that is known. */
export function deviceName(userAgent: string): string {
  const first = (known: readonly [RegExp, string][]) => known.find(([pattern]) => pattern.test(userAgent))?.[1];
  return [first(BROWSERS), first(SYSTEMS)].filter((part) => part !== undefined).join(", ");
}

/** Whether it is carried in a pocket. */
export function isPhone(userAgent: string): boolean {
  return /\b(?:iPhone|Android)\b/.test(userAgent) && !/\b(?:iPad|Tablet)\b/.test(userAgent);
}
