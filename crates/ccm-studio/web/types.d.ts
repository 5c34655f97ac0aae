// What goes over the wire, and names of types that many modules use. It is
// read by tsc alone: nothing of this is served.

/** `[line, column, line, column]` from 0, columns in UTF-16 units. */
type TextRange = [number, number, number, number];

type Path = (string | number)[];

interface Studio {
  version: string;
  commit: string;
  host: string;
  user: string;
  /** whether it runs as root */
  root: boolean;
  directory: string;
  file?: string;
  apply_allowed: boolean;
  read_only: boolean;
  limits: Record<string, number>;
}

interface Field {
  name: string;
  doc: string;
  aliases: string[];
  shape: string;
  items?: {shape: string, items?: any, fields?: Field[]};
  fields?: Field[];
  format?: string;
  words?: string[];
  group?: string;
  phase: "parse" | "keys" | "deferred" | "never";
  secret: boolean;
  required: boolean;
  required_unless?: string;
  required_unless_set?: string;
  conflicts: string[];
}

interface Type {
  name: string;
  about: string;
  ensure: {default: string, words?: string[]};
  providers: string[];
  example?: string;
  fields: Field[];
}

type Types = {types: Type[], common: string[]};

interface FileEntry {
  path: string;
  kind: "manifest" | "template" | "data" | "other";
  size: number;
  modified: string;
  writable: boolean;
  resources?: number;
  errors?: number;
}

interface FileText {
  path: string;
  /** with LF */
  text: string;
  digest: string;
  eol: "lf" | "crlf" | "mixed";
  bom: boolean;
  writable: boolean;
  notes: {code: string, message: string}[];
}

type Operation = Record<string, any> & {op: string};

type Fix = {title: string, operations: Operation[]};

interface Finding {
  severity: "error" | "warning";
  message: string;
  file: string;
  /** from 1 */
  line: number | null;
  /** from 1 */
  column: number | null;
  range?: TextRange;
  resource?: string;
  property?: string;
  hint?: string;
  frame: string;
  fixes: Fix[];
}

interface OutlineEntry {
  number: number;
  type: string;
  name: string;
  resolved?: string;
  alias?: string;
  ensure?: string;
  path: Path;
  range: TextRange;
  block: {path: Path, defaults: Path | null};
  require: string[];
  subscribe: string[];
  findings: number;
}

/** A resource that the text does not hold: of a child manifest, or made by a template. With `note` alone, why there is none. */
interface InnerEntry {
  /** the number of the resource above it in the text */
  parent: number | null;
  depth: number;
  note?: string;
  type: string;
  name: string;
  alias?: string;
  ensure?: string;
  require: string[];
  subscribe: string[];
  file: string;
  /** from 1 */
  line: number | null;
  rendered: boolean;
}

interface Check {
  valid: boolean;
  revision: number;
  findings: Finding[];
  outline: OutlineEntry[];
  /** those with defaults */
  blocks: {path: Path, defaults: any}[];
  inner: InnerEntry[];
  inner_left_out: number;
  guards: import("./core/runs.js").Guard[];
  micros: number;
}

interface Property {
  own?: any;
  default?: {value: any, origin?: string, range?: TextRange};
  shown?: any;
  resolved?: any;
  range?: TextRange;
  editable: boolean;
  reason?: string;
  /** how many places change with it */
  aliases?: number;
  /** whether there is a secret that is not sent */
  hidden?: boolean;
  /** whether the type does not have it */
  unknown?: boolean;
  /** what may have been meant by an unknown one */
  suggestion?: string;
}

interface Form {
  type: string;
  name: string;
  properties: Record<string, Property>;
  used_by: ({resource: string, relation?: string, kind?: string} | string)[];
  number: number;
  total: number;
  path: Path;
}

type Change = {range: TextRange, text: string};

interface Run {
  id: string;
  mode: "plan" | "apply";
  path: string;
  digest: string;
  state: string;
  started: string;
  report?: any;
  diffs?: any;
}

/** `{}` is this machine. */
type FactsChoice = Record<string, any>;

type Signal<T> = import("./vendor/preact.js").Signal<T>;
type Children = import("./vendor/preact.js").ComponentChildren;
/** An open file. */
type OpenFile = import("./core/document.js").Document;
/** What a field proposes. */
type Option = import("./ui/combo.js").Option;
