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
    // Exports of a WebAssembly instance are plain functions, not methods that need an object.
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
      // a type assertion may narrow a type more than the compiler can see
      "@typescript-eslint/no-unnecessary-condition": "off",
      "max-lines-per-function": "off",
    },
  },
  {
    files: ["scripts/**", "bench/**", "*.js"],
    languageOptions: { globals: { console: "readonly", process: "readonly", URL: "readonly" } },
  },
  {
    // Functions in bench/ run in a browser's page, although Node loads the file.
    files: ["bench/**"],
    languageOptions: {
      globals: Object.fromEntries(
        [
          "document",
          "fetch",
          "File",
          "localStorage",
          "location",
          "MutationObserver",
          "performance",
          "Worker",
        ].map((name) => [name, "readonly"]),
      ),
    },
  },
);
