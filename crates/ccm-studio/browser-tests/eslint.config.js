// What the linter looks at: mistakes that neither tsc nor the formatter knows.
import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["web/vendor/**", "browser-tests/node_modules/**", "browser-tests/results/**"] },
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      curly: ["error", "multi-line"],
      eqeqeq: "error",
      "no-constructor-return": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-param-reassign": "error",
      "no-self-compare": "error",
      "no-throw-literal": "error",
      "no-unreachable-loop": "error",
      "no-unused-expressions": "error",
      "no-unused-vars": ["error", { ignoreRestSiblings: true, varsIgnorePattern: "^_" }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
    },
  },
  { files: ["web/**"], languageOptions: { globals: globals.browser } },
  {
    files: ["browser-tests/**"],
    // What is evaluated in the page has the page's names.
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
];
