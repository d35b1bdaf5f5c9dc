import * as loaded from "@mlc-ai/web-xgrammar";

const { xgrammar: named } = globalThis as { xgrammar?: typeof loaded };

/**
 * The library. Its file is an old-style script: a bundler makes a module of it, and where it is
 * loaded as a module by itself it leaves a global behind in place of exports.
 */
export const xgrammar = named ?? loaded;
