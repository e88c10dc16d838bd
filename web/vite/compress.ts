// Writes a `.br` and a `.gz` beside every text file of the build, so that the server only has to pick one.
// It never changes a file, and it leaves out what is compressed already (woff2) or would not get smaller.

import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const TEXT = /\.(?:css|html|js|json|svg|txt|webmanifest)$/;
/** Under this a compressed copy costs more in headers and disk blocks than it saves. */
const BYTES_MIN = 512;

export function compress(): Plugin {
  let out = "";
  return {
    name: "purplemux-compress",
    apply: "build",
    configResolved(config) {
      out = join(config.root, config.build.outDir);
      if (config.build.outDir.startsWith("/")) out = config.build.outDir;
    },
    async closeBundle() {
      const names = await readdir(out, { recursive: true });
      await Promise.all(names.filter((name) => TEXT.test(name)).map((name) => beside(join(out, name))));
    },
  };
}

async function beside(path: string): Promise<void> {
  const bytes = await readFile(path);
  if (bytes.length < BYTES_MIN) return;
  const br = await promisify(brotliCompress)(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
  const gz = await promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION });
  await Promise.all([
    br.length < bytes.length ? writeFile(`${path}.br`, br) : undefined,
    gz.length < bytes.length ? writeFile(`${path}.gz`, gz) : undefined,
  ]);
}
