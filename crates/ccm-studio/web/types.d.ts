// Names of types that many modules use; `answers.d.ts` has those of the server. Only tsc reads
// both: nothing of this is served.

/** `[line, column, line, column]` from 0, columns in UTF-16 units. */
type TextRange = [number, number, number, number];

type Path = Api.Step[];

type Studio = Api.Studio;
type Field = Api.Field;
type Type = Api.Type;
type Types = Api.Types;
type FileEntry = Api.FileEntry;
type FileText = Api.FileText;
type Finding = Api.Finding;
type Fix = Api.Fix;
type OutlineEntry = Api.OutlineEntry;
type InnerEntry = Api.InnerEntry;
type Check = Api.Check;
type Property = Api.Property;
type Form = Api.Form;
type Change = Api.TextChange;

/** An edit as it is sent: that of the engine, or one that a fix proposes. */
type Operation = Record<string, any> & { op: string };

/** The facts that are chosen as they are sent; `{}` is this machine. */
type FactsChoice = { source?: string; path?: string; set?: string[] };

/** The events of a stream, by their names. */
type StreamEvent<T> = { [K in keyof T]: { id: string; event: K; data: T[K] } }[keyof T];

interface Streams {
  watch: Api.WatchEvents;
  [path: `runs/${string}/events`]: Api.RunEvents;
}

type Signal<T> = import("./vendor/preact.js").Signal<T>;
type Children = import("./vendor/preact.js").ComponentChildren;
/** An open file. */
type OpenFile = import("./core/document.js").Document;
/** What a field proposes. */
type Option = import("./ui/combo.js").Option;
