// The editor: CodeMirror, package by package, and only what the page uses.
export {
  ChangeSet,
  Compartment,
  EditorSelection,
  EditorState,
  Prec,
  RangeSet,
  StateEffect,
  StateField,
  Text,
  Transaction,
} from "@codemirror/state";
export {
  Decoration,
  EditorView,
  GutterMarker,
  MatchDecorator,
  ViewPlugin,
  WidgetType,
  crosshairCursor,
  drawSelection,
  dropCursor,
  gutter,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
  rectangularSelection,
} from "@codemirror/view";
export {
  defaultKeymap,
  history,
  historyKeymap,
  indentWithTab,
  isolateHistory,
  redo,
  undo,
} from "@codemirror/commands";
export {
  HighlightStyle,
  bracketMatching,
  codeFolding,
  foldGutter,
  foldKeymap,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
export { yaml } from "@codemirror/lang-yaml";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
export { tags } from "@lezer/highlight";
export type {
  ChangeDesc,
  Extension,
  Range,
  StateEffectType,
  TransactionSpec,
} from "@codemirror/state";
export type { Command, DecorationSet, Tooltip, ViewUpdate } from "@codemirror/view";
export type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
