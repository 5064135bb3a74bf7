import { defineConfig } from "vitest/config";
import { stub } from "./dev/stub.ts";

const server = process.env.TICKWORK_URL;

export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/tickwork/server/ui",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        entryFileNames: "assets/[name]-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  test: { css: true },
  plugins: server ? [] : [stub()],
  server: {
    proxy: server ? { "^/api/": { target: server, changeOrigin: false } } : undefined,
  },
});
