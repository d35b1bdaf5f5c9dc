/** The library for grammars, which is a file of its own wherever this package is bundled by itself. */
export {
  Grammar,
  GrammarCompiler,
  GrammarMatcher,
  Testings,
  TokenizerInfo,
} from "@mlc-ai/web-xgrammar";
