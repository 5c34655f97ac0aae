// The editor: CodeMirror, package by package, and only what the page uses.
export { ChangeSet, Compartment, EditorSelection, EditorState, Facet, Prec, RangeSet, RangeSetBuilder, StateEffect, StateField, Text, Transaction } from "@codemirror/state";
export { Decoration, EditorView, GutterMarker, MatchDecorator, ViewPlugin, WidgetType, crosshairCursor, drawSelection, dropCursor, gutter, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, hoverTooltip, keymap, lineNumbers, rectangularSelection } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, indentWithTab, invertedEffects, isolateHistory, redo, redoDepth, undo, undoDepth } from "@codemirror/commands";
export { HighlightStyle, bracketMatching, codeFolding, foldGutter, foldKeymap, foldService, indentOnInput, indentUnit, syntaxHighlighting, syntaxTree } from "@codemirror/language";
export { yaml } from "@codemirror/lang-yaml";
export { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
export { acceptCompletion, autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { tags } from "@lezer/highlight";
