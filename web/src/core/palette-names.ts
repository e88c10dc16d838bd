// What the terminal's palettes are called; their colours come with the terminal (palettes.ts).

export const PALETTES = ["purple", "paper", "moss", "harbor", "clay", "rose", "steel", "plain"] as const;
export type Palette = (typeof PALETTES)[number];
