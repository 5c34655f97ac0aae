export type {
  ChangeDesc,
  Extension,
  Range,
  StateEffectType,
  TransactionSpec,
} from "@codemirror/state";
export type { Command, DecorationSet, Tooltip, ViewUpdate } from "@codemirror/view";
export type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
