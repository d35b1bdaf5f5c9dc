import eslint from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  globalIgnores(["build", "dist", "python/build", "src/standalone/*.js"]),
  eslint.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      "@typescript-eslint/no-invalid-void-type": "off",
      "@typescript-eslint/no-unused-vars": [
        "error",
        { argsIgnorePattern: "^_", varsIgnorePattern: "^_" },
      ],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "max-lines": ["warn", 400],
      "max-lines-per-function": ["warn", { max: 50, skipComments: true }],
    },
  },
  {
    // What an instance of WebAssembly exports is no method of an object.
    files: ["src/core/**", "src/app/**"],
    rules: {
      "@typescript-eslint/no-unnecessary-type-assertion": "off",
      "@typescript-eslint/unbound-method": "off",
      "prefer-const": "off",
    },
  },
  {
    files: ["test/**"],
    rules: {
      "@typescript-eslint/no-floating-promises": "off",
      "@typescript-eslint/no-unnecessary-condition": "off", // an assertion narrows more than it shows
      "max-lines-per-function": "off",
    },
  },
  {
    files: ["scripts/**", "bench/**", "*.js"],
    languageOptions: { globals: { console: "readonly", process: "readonly", URL: "readonly" } },
  },
  {
    // Functions that a browser's page is given.
    files: ["bench/**"],
    languageOptions: {
      globals: Object.fromEntries(
        ["document", "fetch", "File", "location", "MutationObserver", "performance", "Worker"].map(
          (name) => [name, "readonly"],
        ),
      ),
    },
  },
);
