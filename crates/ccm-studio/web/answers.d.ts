// Made by `cargo xtask docs` from the Rust types of the answers; never edited.

declare namespace Api {
  interface Get {
    "studio": Studio;
    "types": Types;
    "files": Files;
    [path: `files/${string}`]: FileText;
    "names": Names;
    "facts": Facts;
    [path: `facts?environ=${string}`]: Variable;
    "runs": Runs;
    [path: `runs/${string}`]: Run;
    "history": History;
    [path: `history/${string}`]: HistoryShown;
  }

  interface Put {
    [path: `files/${string}`]: FileSaved;
  }

  interface Post {
    "session": Session;
    "check": Check;
    "form": Form;
    "ensure": Ensure;
    "graph": GraphDocument;
    "data": Data;
    "template": Rendered;
    "edit": Edited;
    "yaml": YamlValue;
    "runs": Started;
    [path: `history/${string}/undo`]: Started;
  }

  interface Delete {
    [path: `runs/${string}`]: Started;
  }

  interface RunEvents {
    "started": RunStarted;
    "resource": TurnStarted;
    "event": TurnDone;
    "output": OutputLine;
    "message": Message;
    "warning": Diagnostic;
    "diagnosis": Diagnosed;
    "stale": Differences;
    "finished": RunEnded;
  }

  interface WatchEvents {
    "file": FileChanged;
    "files": Nothing;
    "stopping": Nothing;
  }

  /** A block with `defaults`. */
  type Block = {
    /** Where it is. */
    path: Step[];
    /** The defaults, as written. */
    defaults: any;
  };

  /** One property before and after a step. */
  type Change = {
    /** The property that changes */
    property: string;
    /** Value before; absent if there was none or it is secret */
    from?: ChangeValue;
    /** Value after; absent if there is none or it is secret */
    to?: ChangeValue;
    /** The values are secret */
    secret?: boolean;
    /** Number of added lines */
    added?: number;
    /** Number of removed lines, or the removed members */
    removed?: Removed;
    /** The members of a directory that are created */
    created?: string[];
    /** The members of a directory that are updated */
    updated?: string[];
  };

  /** The value of a property in a change. */
  type ChangeValue = boolean | string | string[];

  /** What is known about a text. */
  type Check = {
    /** Whether it can be applied. */
    valid: boolean;
    /** Whether it is YAML at all. */
    is_yaml: boolean;
    findings: Finding[];
    outline: OutlineEntry[];
    /** Those with defaults. */
    blocks: Block[];
    inner: InnerEntry[];
    /** How many more there are. */
    inner_left_out: number;
    guards: Guard[];
    /** The time that it took. */
    micros: number;
    /** Names the text in requests. */
    digest: string;
    revision: number | null;
  };

  /**
   * How many resources have which outcome. A resource that applies a manifest is not counted
   * beside the resources of that manifest.
   */
  type Counts = {
    /** Created or installed */
    create: number;
    /** Changed */
    change: number;
    /** Removed */
    remove: number;
    /** Reacting to a change of another resource */
    refresh: number;
    /** Commands that run */
    run: number;
    /** Provisional: only the run can decide it */
    provisional: number;
    /** Failed */
    failed: number;
    /** Skipped, by `control` or for an unmet requirement */
    skipped: number;
    /** Already in the desired state */
    stable: number;
    /** The skipped ones with an unmet requirement */
    unmet?: number;
    /** Only previewed in a real run, and would have changed */
    previewed?: number;
    /**
     * With steps that `--offline` leaves to the first boot; those with other changes are counted
     * beside the others
     */
    deferred?: number;
    /** Not selected by `--only` and `--skip` */
    not_selected: number;
  };

  /** The data of a manifest. */
  type Data = {
    /** The hierarchy, the strongest entry first. */
    order: OrderEntry[];
    /** How levels are merged, as written. */
    merge: any;
    data: any;
    /** The keys one by one, with where they come from. */
    origins: DataKey[];
    rules: DataRule[];
    facts_used: FactUsed[];
    findings: DataFinding[];
    /** Whether there are more keys than are listed. */
    truncated: boolean;
    revision: number | null;
  };

  /** What is wrong with the data. */
  type DataFinding = {
    severity: Severity;
    message: string;
    hint?: string;
    range?: [number, number, number, number];
  };

  /** A key of the data. */
  type DataKey = {
    /** Its path with dots. */
    key: string;
    path: string[];
    value: any;
    type: string;
    secret: boolean;
    /** The weaker levels that have it. */
    replaced: ReplacedLevel[];
    layer?: string;
    file?: string;
    /** From 1. */
    line?: number;
    range?: [number, number, number, number];
    /** The text with placeholders that the value was made of. */
    template?: string;
    /** All levels that it comes from, if they were merged. */
    merged?: DataLevel[];
  };

  /** A level of the hierarchy that has a key. */
  type DataLevel = {
    layer: string;
    file?: string;
    /** From 1. */
    line?: number;
    range?: [number, number, number, number];
    /** The text with placeholders that the value was made of. */
    template?: string;
  };

  /** A rule for a key. */
  type DataRule = {
    key: string;
    required: boolean;
    validation: string | null;
    secret: boolean;
    holds: boolean;
    range: [number, number, number, number];
  };

  /** What a run would do to one resource, and the differences that lead to it. */
  type Decision = {
    /** Outcome that a run would have */
    outcome: Outcome;
    /** Each property that differs, before and after */
    changes: Change[];
    /** Why it would fail, or is skipped */
    error?: string;
  };

  type DefaultValue = {
    value: any;
    origin: string;
    range?: [number, number, number, number];
  };

  /** `diagnosis`: what is wrong with a manifest. */
  type Diagnosed = {
    findings: DiagnosedFinding[];
  };

  /** An error or a warning, with its frame. */
  type DiagnosedFinding = {
    /** Severity */
    severity: Severity;
    /** Message */
    message: string;
    /** The file; empty if no file caused it */
    file: string;
    /** The line, from 1 */
    line: number | null;
    /** The column in characters, from 1 */
    column: number | null;
    /** The resource that it concerns, as `type#name` */
    resource?: string;
    /** Advice on how to fix the problem */
    hint?: string;
    /** As the command line shows it. */
    frame: string;
    /** Where it is, if that is in the text itself. */
    range?: [number, number, number, number];
  };

  /** An error or a warning, with its location where it has one. */
  type Diagnostic = {
    /** Severity */
    severity: Severity;
    /** Message */
    message: string;
    /** The file; empty if no file caused it */
    file: string;
    /** The line, from 1 */
    line: number | null;
    /** The column in characters, from 1 */
    column: number | null;
    /** The resource that it concerns, as `type#name` */
    resource?: string;
    /** Advice on how to fix the problem */
    hint?: string;
  };

  /** `stale`: how the machine differs from the plan. */
  type Differences = {
    differences: string[];
  };

  /** How one resource refers to another. */
  type EdgeKind = "require" | "subscribe" | "apply";

  /** What an edit does to the text. */
  type Edited = {
    changes: TextChange[];
    /** Names the new text in requests. */
    digest: string;
    revision: number | null;
  };

  /** A resource that is asked for alone. */
  type Ensure = {
    /** As a command; null for a type that `ccm ensure` does not offer. */
    command: string | null;
    /** Properties that the command has no flag for. */
    left_out: string[];
    /** As a request of the API. */
    request: any;
    /** Whether secrets were left out of both. */
    redacted: boolean;
  };

  /** The values of `ensure`. */
  type EnsureForm = {
    /** The one that is meant where none is written. */
    default: string;
    /** All of them, if it is not free text. */
    words?: string[];
  };

  /** How lines end. */
  type Eol = "lf" | "crlf" | "mixed";

  /** What went wrong. */
  type Error = {
    /** For programs. */
    code: string;
    /** For people. */
    message: string;
    /** What to do about it. */
    hint?: string;
    /** The id of the request, as the log of the studio has it. */
    request: string;
    /** The kind of an edit that was refused. */
    kind?: string;
    /** Where it is in the text. */
    range?: [number, number, number, number];
    /** As the command line shows it. */
    frame?: string;
    /** What is wrong with the manifest. */
    findings?: Diagnostic[];
    /** The placeholders of a template, redacted. */
    placeholders?: Placeholder[];
    text?: string;
    eol?: Eol;
    bom?: boolean;
    digest?: string;
  };

  /** The outcome of one resource, as it is written to sessions and reports. */
  type Event = {
    /** The name of this format. */
    protocol: "io.choria.ccm.v1.transaction.event";
    /** Sorts in the order of recording. */
    event_id: string;
    /** Time at which the resource was done. */
    timestamp: string;
    /** The resource's type. */
    type: string;
    /** The provider; empty if none was selected. */
    provider: string;
    /** Its name. */
    name: string;
    /** Its alias. */
    alias?: string;
    /**
     * The child manifests on the way to the resource, as they are written; empty for the first
     * manifest.
     */
    route?: string[];
    /** The item of a `for_each` that the resource was made for. */
    item?: ItemPlace;
    /** The group whose steps were taken together, if the resource was part of one. */
    group?: GroupPlace;
    /** The outcome in one word, since the event was recorded; see [`Event::outcome`]. */
    outcome?: Outcome;
    /**
     * Whether it only sums up the events of a child manifest, which stand for it: counts leave
     * it out.
     */
    aggregate?: boolean;
    /** Of a failed resource: file, line and column at which it is declared. */
    location?: string;
    /** Requested `ensure` value. */
    requested_ensure: string;
    /** `ensure` value at the end. */
    final_ensure: string;
    /** Duration in nanoseconds. */
    duration: number;
    /** Properties with secrets redacted; null if not requested. */
    properties: any;
    /** State at the end; null if it was not observed or not requested. */
    status: any;
    /** Description of the steps that noop mode skipped. */
    noop_message?: string;
    /** Verbs of the steps, or in noop mode of the predicted steps, in order. */
    verbs?: Verb[];
    /** Changes, or in noop mode predicted changes: each property before and after. */
    changes: Change[];
    /** In noop mode: provisional, only the run can decide it. */
    provisional?: boolean;
    /** The resources on which a provisional one depends. */
    waits_for?: string[];
    /** The changed resources that it subscribes to. */
    because?: string[];
    /** An owed reaction to a change in an earlier run. */
    owed?: OwedReaction;
    /** Steps that `--offline` leaves to the first boot, such as `start`. */
    deferred?: string[];
    /** How often a command was tried, if it ran. */
    tries?: number;
    /** Results of its health checks. */
    health_check?: HealthCheckResult[];
    /** Whether only health checks ran. */
    health_check_only?: boolean;
    /** All errors. */
    error: string[];
    /** Whether the resource changed, or in noop mode would have changed. */
    changed: boolean;
    /** Whether the resource reacted to a change of a subscribed resource. */
    refreshed: boolean;
    /** Whether the resource failed. */
    failed: boolean;
    /** Whether ccm skipped the resource. */
    skipped: boolean;
    /** Whether this was a dry run (noop mode). */
    noop: boolean;
    /** Unmet requirements, for which ccm skipped the resource. */
    unmet_requirements: string[];
  };

  /** A fact that the hierarchy asks for. */
  type FactUsed = {
    name: string;
    value: any;
    is_set: boolean;
  };

  /** Facts, and the names of the variables of the environment. */
  type Facts = {
    /** All of them, or what is below a path. */
    facts: any;
    environ: string[];
  };

  /** The answer to a request that failed. */
  type Failure = {
    error: Error;
  };

  /** A property of a type. */
  type Field = {
    /** Its name. */
    name: string;
    /** Its documentation. */
    doc: string;
    /** Its other names. */
    aliases: string[];
    /** The name of the shape. */
    shape: ShapeName;
    /** What the items of a list look like. */
    items?: Shape;
    /** The parts of a struct, or of the map that a text can be instead. */
    fields?: Field[];
    /** What its texts must be. */
    format?: string;
    /** The texts that are allowed, if these are all. */
    words?: string[];
    /** The heading that it belongs to. */
    group?: string;
    /** When its placeholders are resolved. */
    phase: PhaseForm;
    /** Whether its value must not be shown. */
    secret: boolean;
    /** Whether it must be set, at least with some values of others. */
    required: boolean;
    /** The properties that exclude it. */
    conflicts: string[];
  };

  /** A file that is open in a page, as it is now. */
  type FileChanged = {
    path: string;
    /** Absent if the file is gone. */
    digest?: string;
  };

  /** A file of the directory. */
  type FileEntry = {
    path: string;
    kind: FileKind;
    size: number;
    modified: string;
    writable: boolean;
    resources?: number;
    errors?: number;
  };

  /** What a file is. */
  type FileKind = "manifest" | "template" | "data" | "other";

  /** Something to know about a file. */
  type FileNote = {
    code: string;
    message: string;
  };

  /** A file that was saved. */
  type FileSaved = {
    digest: string;
  };

  /** A file that is open. */
  type FileText = {
    path: string;
    /** With LF at the end of lines, and without a byte order mark. */
    text: string;
    /** The digest of the bytes, for saving. */
    digest: string;
    eol: Eol;
    bom: boolean;
    writable: boolean;
    notes: FileNote[];
  };

  /** The files of the directory. */
  type Files = {
    files: FileEntry[];
    /** Whether there are more. */
    truncated: boolean;
  };

  /** A finding with its range, frame and fixes, for editors. */
  type Finding = {
    /** Severity */
    severity: Severity;
    /** Message */
    message: string;
    /** The file; empty if no file caused it */
    file: string;
    /** The line, from 1 */
    line: number | null;
    /** The column in characters, from 1 */
    column: number | null;
    /** The resource that it concerns, as `type#name` */
    resource?: string;
    /** Advice on how to fix the problem */
    hint?: string;
    /**
     * Where it is in the text: line, column, line, column, from 0, columns in UTF-16 units. Only
     * for what is in the text itself.
     */
    range?: [number, number, number, number];
    /** As the command line shows it; empty behind the first 200. */
    frame: string;
    /** Edits that would fix the problem. */
    fixes: Fix[];
  };

  /** Edits that fix a finding. */
  type Fix = {
    /** A short description of the fix. */
    title: string;
    /** The edits. */
    operations: Operation[];
  };

  /** A resource with all that a form shows. */
  type Form = {
    /** Its type. */
    type: string;
    /** Its name, placeholders as written. */
    name: string;
    /** Its properties: those of its type, and unknown ones that are written. */
    properties: Record<string, Property>;
    /** The resources that refer to it. */
    used_by: User[];
    /** Its place in the order of the text, from 1. */
    number: number;
    /** How many resources there are. */
    total: number;
    /** Where it is: the value of this path has its properties. */
    path: Step[];
    revision: number | null;
  };

  /** A child manifest. */
  type GraphCluster = {
    /** Number of the cluster, from 0 */
    id: number;
    /** The manifest */
    manifest: string;
    /** The node that applies it */
    node: number;
    /** Left edge */
    x: number;
    /** Top edge */
    y: number;
    /** Width */
    width: number;
    /** Height */
    height: number;
  };

  /** A graph with its layout, in pixels. */
  type GraphDocument = {
    /** The name of this format */
    protocol: "io.choria.ccm.v1.graph";
    /** The manifest */
    manifest: string;
    /** Width of the picture */
    width: number;
    /** Height of the picture */
    height: number;
    /** The resources of all manifests, in run order */
    nodes: GraphNode[];
    /** From the earlier resource to the one that refers to it */
    edges: GraphEdge[];
    /** The child manifests */
    clusters: GraphCluster[];
  };

  /** A reference. */
  type GraphEdge = {
    /** The earlier node */
    from: number;
    /** The node that refers to it */
    to: number;
    /** Kind of the reference */
    kind: EdgeKind;
  };

  /** One resource. */
  type GraphNode = {
    /** Number of the node, from 0 */
    id: number;
    /** Type of the resource */
    type: string;
    /** Name of the resource */
    name: string;
    /** Alias of the resource */
    alias?: string;
    /** The child manifest that contains it; absent for the first manifest */
    cluster?: number;
    /** The line that declares it */
    line?: number;
    /** Note, such as a child manifest that cannot be read */
    note?: string;
    /** What a run would do, with `--plan` */
    decision?: Decision;
    /** Length of the longest chain of references to it */
    column: number;
    /** Row within its column */
    row: number;
    /** Left edge */
    x: number;
    /** Top edge */
    y: number;
    /** Width */
    width: number;
    /** Height */
    height: number;
  };

  /** A graph in another format. */
  type GraphText = {
    svg: string;
  } | {
    dot: string;
  } | {
    mermaid: string;
  };

  /** The place of a resource in a group of adjacent ones whose steps were taken together. */
  type GroupPlace = {
    /** How many resources the group has. */
    size: number;
    /** Its place among them, from 0. */
    index: number;
  };

  /** A command that a plan runs, or a manifest whose commands are not known yet. */
  type Guard = GuardCommand | UnknownGuards;

  type GuardCommand = {
    resource: string;
    file: string;
    property: string;
    command: string;
    /** Who runs it. */
    user: string;
  };

  /** The result of one check. */
  type HealthCheckResult = {
    /** Status of the last attempt: 0 is OK, 1 warning, 2 critical, 3 unknown. */
    status: number;
    /** Number of attempts. */
    tries: number;
    /** Message of the check. */
    output: string;
    /** The check's name. */
    name: string;
    /** Duration of all attempts, in nanoseconds. */
    duration?: number;
  };

  /** Results of health checks by status. */
  type HealthChecks = {
    /** Checks with the result OK. */
    ok: number;
    /** Fine, with a warning. */
    warning: number;
    /** Checks with the result CRITICAL. */
    critical: number;
    /** Could not be told. */
    unknown: number;
  };

  /** What has happened, by where it is known from. */
  type History = {
    history: HistoryEntry[];
  };

  /** A run in the list. */
  type HistoryEntry = {
    kind: HistoryKind;
    /** Asks for it; null if it cannot be read, for the reason in `error`. */
    id: string | null;
    title: string;
    error?: string;
    started?: string;
    finished?: string;
    /** How many resources have which outcome. */
    counts?: Counts;
    /** Whether it changed nothing: a plan, or a run in noop mode. */
    is_preview: boolean;
    /** How many resources a run of the state directory changed that has no counts. */
    changed?: number;
    /** How many failed. */
    failed: number;
    /** Of a run of this studio. */
    mode?: Mode;
    state?: string;
    /** Of a run of the state directory. */
    user?: string;
    undo_of?: string;
    /** How much of it can be taken back: `yes`, `partly` or `no`. */
    undo?: string;
  };

  /** Where a run is known from. */
  type HistoryKind = "session" | "run" | "state" | "report";

  /** A run with its resources. */
  type HistoryShown = {
    id: string;
    manifest?: string;
    started?: string;
    /** The run that it took back. */
    undo_of?: string;
    /** Whether parts of it could not be read. */
    damaged: boolean;
    rows: Row[];
    counts: Counts;
    /** The plan, report or recorded run itself. */
    record: any;
  };

  /**
   * A resource that the text does not have: of a child manifest, or made by a template. Or why
   * there is none.
   */
  type InnerEntry = InnerResource | InnerNote;

  type InnerNote = {
    /** The number of the resource above it in the text. */
    parent: number | null;
    depth: number;
    note: string;
  };

  type InnerResource = {
    /** The number of the resource above it in the text. */
    parent: number | null;
    depth: number;
    type: string;
    name: string;
    alias?: string;
    ensure: string;
    require: string[];
    subscribe: string[];
    file: string;
    /** From 1. */
    line: number | null;
    /** Whether a template has made it. */
    rendered: boolean;
  };

  /** The place of a resource in the loops that made it. */
  type ItemPlace = {
    /** The place of the item, from 0. */
    index: number;
    /** Its key, in a loop over a map. */
    key?: string;
    /** The name of the items of the loop. */
    as: string;
    /** The item of the loop around it. */
    parent?: ItemPlace;
  };

  /** `message`: words for people. */
  type Message = {
    text: string;
    severity?: Severity;
  };

  /** What a run does. */
  type Mode = "plan" | "apply" | "undo";

  /** Users and groups. */
  type Names = {
    users: string[];
    groups: string[];
  };

  /** An event that says nothing but its name. */
  type Nothing = Record<string, never>;

  /**
   * What is to be done to a document. As JSON: `{"op": "set", "path": ["a", 0], "value": 1,
   * "before": "b"}`.
   */
  type Operation = {
    op: "set";
    /** Where. */
    path: Step[];
    /** The new value. */
    value: any;
  } & ({
    before: string;
  } | {
    after: string;
  } | {}) | {
    op: "remove";
    /** Where. */
    path: Step[];
  } | {
    op: "insert";
    /** The list. */
    path: Step[];
    /** The index that the item will have. */
    index: number;
    /** The new item. */
    value: any;
  } | {
    op: "move";
    /** The item. */
    path: Step[];
    /** The index that it will have. */
    to: number;
  } | {
    op: "copy";
    /** The item. */
    path: Step[];
    /** The index that the copy will have. */
    to: number;
  } | {
    op: "rename";
    /** Where. */
    path: Step[];
    /** The new name. */
    key: string;
  };

  /** An entry of the hierarchy. */
  type OrderEntry = {
    written: string;
    matched: boolean;
    /** The name that it stands for. */
    entry?: string;
    /** Why it did not match. */
    why?: string;
    range?: [number, number, number, number];
  };

  /** What became of a resource, or in a preview what would become of it. */
  type Outcome =
    | "create"
    | "change"
    | "remove"
    | "refresh"
    | "run"
    | "provisional"
    | "failed"
    | "skipped"
    | "stable";

  /** The block of a resource. */
  type OutlineBlock = {
    /** Where it is. */
    path: Step[];
    /** Where its `defaults` are, if it has any. */
    defaults: Step[] | null;
    /** The loops around it, the outermost first. */
    loops?: OutlineLoop[];
    /** The tags that the blocks around it add, as written. */
    tags?: string[];
  };

  /** A resource of the outline, with its range and how many findings it has. */
  type OutlineEntry = {
    /** Its place in the order of the text, from 1. */
    number: number;
    /** Its type, which may be unknown. */
    type: string;
    /** Its name, placeholders as written. */
    name: string;
    /** Its other name. */
    alias?: string;
    /** The state that is asked for, its own or from the defaults. */
    ensure?: string;
    /** Where it is: the value of this path has its properties. */
    path: Step[];
    /** From its name to the end of its last line. */
    span: [number, number];
    /** The block that it is in. */
    block: OutlineBlock;
    /** Its `require` references, as written. */
    require: string[];
    /** Its `subscribe` references, as written. */
    subscribe: string[];
    /** Where it is in the text, as in [`CheckedFinding::range`]. */
    range: [number, number, number, number];
    /** How many findings are about it. */
    findings: number;
  };

  /** A `for_each` around resources. */
  type OutlineLoop = {
    /** What it goes over, as written. */
    for_each: string;
    /** The name of its items, if it gives them one. */
    as?: string;
  };

  /** `output`: a line that a command printed. */
  type OutputLine = {
    line: string;
  };

  /** An owed reaction from an earlier run. */
  type OwedReaction = {
    /** Time just before the change. */
    since: string;
    /** The first resource that changed, as `type#name`. */
    by: string;
  };

  /** When placeholders are resolved. */
  type PhaseForm = "parse" | "keys" | "deferred" | "never";

  /** A placeholder with its value, or with what is wrong with it. */
  type Placeholder = {
    range: [number, number, number, number];
    expression: string;
    type?: string;
    value?: any;
    error?: string;
  };

  /** A plan: what a run of a manifest would do to one machine. */
  type Plan = {
    /** The name of this format */
    protocol: "io.choria.ccm.v1.plan";
    /** The manifest: its path, or its URL without credentials */
    manifest: string;
    /** The machine that it was made for */
    host: PlanHost;
    /** Time at which the plan was made */
    created: string;
    /** The version of ccm that made it */
    version: string;
    /** Number of resources by outcome */
    summary: Counts;
    /** The resources, in the order in which they run */
    resources: PlannedResource[];
    /** Warnings */
    warnings: Diagnostic[];
    /** Why there is no plan */
    errors?: Diagnostic[];
  };

  /** The machine that a plan was made for. */
  type PlanHost = {
    /** Its host name */
    name: string;
    /** Machine ID, or the host name if there is none */
    id: string;
  };

  /** What a run would do to one resource. */
  type PlannedResource = {
    /** Its type */
    type: string;
    /** Its name */
    name: string;
    /** Its alias */
    alias?: string;
    /** The item of a `for_each` that it was made for */
    item?: ItemPlace;
    /** Outcome */
    outcome: Outcome;
    /** Outcome of a provisional one as things are now, if that is known */
    now?: Outcome;
    /** Verbs of the steps, in order */
    verbs?: Verb[];
    /** Changes of these steps */
    changes: Change[];
    /** The resources on which a provisional one depends */
    waits_for?: string[];
    /**
     * The changed resources that it reacts to, or the requirements that keep it from being
     * managed
     */
    because?: string[];
    /** An owed reaction to a change in an earlier run */
    owed?: OwedReaction;
    /** Steps that `--offline` leaves to the first boot, such as `start` */
    deferred?: string[];
    /** Why it would fail */
    error?: string;
    /** Where it is declared, if it would fail: file, line and column */
    location?: string;
    /** Unified diff of a text file */
    diff?: string;
    /** The resources of its manifest are counted instead of it */
    aggregate?: boolean;
    /** The resources of the manifest that it applies */
    children?: PlannedResource[];
  };

  type Property = {
    /** The value that is written; secrets are left out. */
    own?: any;
    default?: DefaultValue;
    /** The own value, or else the default one. */
    shown: any;
    /** What the placeholders of the shown value stand for. */
    resolved?: any;
    /** Where its own value is written. */
    range?: [number, number, number, number];
    /** The name that it is written under, if that is another one. */
    written?: string;
    /** Whether it has a value that is not sent because it is a secret. */
    hidden?: boolean;
    /** Whether the type does not have it. */
    unknown?: boolean;
    /** Suggestion for an unknown property. */
    suggestion?: string;
    /** Whether it must be set, with the values that others have. */
    required: boolean;
    editable: boolean;
    reason?: string;
    /** How many aliases elsewhere change with it. */
    aliases?: number;
  };

  /** What is removed: lines of a text, or members of a directory. */
  type Removed = number | string[];

  /** What a template gives. */
  type Rendered = {
    type: string;
    text: string;
    /** The value, if it is not a text. */
    value?: any;
    /** Whether the text is longer than this. */
    truncated: boolean;
    placeholders: Placeholder[];
    warnings: string[];
    /** What a scaffold of it would write. */
    files?: RenderedFile[];
    /** The time that it took. */
    micros: number;
    revision: number | null;
  };

  /** A file that a scaffold would write. */
  type RenderedFile = {
    path: string;
    bytes: number;
    /** Null if it is not text, or too long. */
    text: string | null;
  };

  /** A level whose value something else has replaced. */
  type ReplacedLevel = {
    layer: string;
    file?: string;
    /** From 1. */
    line?: number;
    range?: [number, number, number, number];
    /** The text with placeholders that the value was made of. */
    template?: string;
    value?: any;
  };

  /** What `--report-file` and `--json` write. */
  type Report = {
    /** The name of this format */
    protocol: string;
    /** What was applied: a manifest or a session */
    manifest: string;
    /** Nothing was really done */
    noop: boolean;
    /** When the run began */
    started: string;
    /** How many resources have which outcome */
    summary: Summary;
    /** One event per resource, in run order */
    events: Event[];
    /** What is worth knowing and stopped nothing */
    warnings: Diagnostic[];
    /** Why nothing was run */
    errors?: Diagnostic[];
    /** What subscribers owe after the run */
    owed?: StillOwed[];
  };

  /** One resource of a plan or run. */
  type Row = {
    /** Its type */
    type: string;
    /** Its name */
    name: string;
    /** Its alias */
    alias?: string;
    /** The item of a `for_each` that it was made for */
    item?: ItemPlace;
    /** Outcome */
    outcome: Outcome;
    /** Outcome of a provisional one as things are now, if that is known */
    now?: Outcome;
    /** Verbs of the steps, in order */
    verbs?: Verb[];
    /** Changes of these steps */
    changes: Change[];
    /** The resources on which a provisional one depends */
    waits_for?: string[];
    /**
     * The changed resources that it reacts to, or the requirements that keep it from being
     * managed
     */
    because?: string[];
    /** An owed reaction to a change in an earlier run */
    owed?: OwedReaction;
    /** Steps that `--offline` leaves to the first boot, such as `start` */
    deferred?: string[];
    /** Why it would fail */
    error?: string;
    /** Where it is declared, if it would fail: file, line and column */
    location?: string;
    /** Unified diff of a text file */
    diff?: string;
    /** The resources of its manifest are counted instead of it */
    aggregate?: boolean;
    /** The resources of the manifest that it applies */
    children?: PlannedResource[];
    /** The reason of its outcome in one line. */
    short: string;
    /** How many child manifests lead to it. */
    depth: number;
    /** What of the diff is not for everybody to see, such as `12 lines`. */
    hidden?: string;
    /** The time that it took. */
    micros: number;
    health_check?: HealthCheckResult[];
    /** Why parts of it cannot be undone. */
    cannot_undo?: string[];
    /** Properties and state at the end, in the history. */
    properties?: any;
    status?: any;
  };

  /** A plan, an apply or an undo of this studio. */
  type Run = {
    id: string;
    mode: Mode;
    /** The manifest. */
    path: string;
    /** The digest of its text. */
    digest: string;
    state: string;
    /** What its end means: `done`, `failed`, `stopped` or `busy`. */
    exit?: string;
    started: string;
    /** Which diffs are shown: `public` or `all`. */
    diffs: string;
    /** Whether a plan can no longer be applied. */
    stale: boolean;
    /** The run that an undo takes back. */
    undo_of?: string;
    /** The plan that is applied. */
    plan?: string;
    /** The plan or report, in the answer about one run. */
    report?: RunReport;
    /** The summary of the plan or report, in a list. */
    summary?: RunSummary;
  };

  /** `finished`: the last event. */
  type RunEnded = {
    /** The counts of the plan or report, if there is one. */
    summary?: RunSummary;
    /** Why it ended early: `cancelled` or `failed`. */
    stop?: string;
  };

  /** What a run leaves. */
  type RunReport = Plan | Report;

  /** `started`: the run begins. */
  type RunStarted = {
    /** How many resources the manifest has. */
    total: number;
  };

  /** The counts of a plan or of a report. */
  type RunSummary = Counts | Summary;

  /** The runs of this studio, the last one first. */
  type Runs = {
    runs: Run[];
  };

  /** The key that a link was exchanged for. */
  type Session = {
    key: string;
  };

  /** Severity of a message. */
  type Severity = "warning" | "error";

  /** What values look like, and what is inside of them. */
  type Shape = {
    /** The name of the shape. */
    shape: ShapeName;
    /** What the items of a list look like. */
    items?: Shape;
    /** The parts of a struct, or of the map that a text can be instead. */
    fields?: Field[];
  };

  /** The name of a shape. */
  type ShapeName =
    | "text"
    | "boolean"
    | "integer"
    | "reference"
    | "list"
    | "texts"
    | "data"
    | "struct"
    | "rules";

  /** A run that was started, or asked to stop. */
  type Started = {
    id: string;
  };

  /** One step of a path: into a map by key, into a list by index. */
  type Step = string | number;

  /** A reaction that a later run must make up for. */
  type StillOwed = {
    /** The resource that must react, as `type#name` */
    subscriber: string;
    /** The child manifests on the way to it */
    route?: string[];
    /** The first change that it must react to, as `type#name` */
    by: string;
    /** When that change was about to be made */
    since: string;
  };

  /** About this studio. */
  type Studio = {
    version: string;
    commit: string;
    host: string;
    user: string;
    /** Whether it runs as root. */
    root: boolean;
    directory: string;
    /** The file to show first. */
    file?: string;
    apply_allowed: boolean;
    read_only: boolean;
    limits: StudioLimits;
  };

  type StudioLimits = {
    file_bytes: number;
    files: number;
    body_bytes: number;
    /** A picture of more than this shows a part of the graph. */
    graph_nodes: number;
    /** A plan that is older can no longer be applied. */
    plan_minutes: number;
  };

  /** How many resources became what. */
  type Summary = {
    /** Events of the run, one for each time that a resource was managed. */
    total: number;
    /** Different `type#name` among the events. */
    unique: number;
    /** Resources that were in the desired state already. */
    stable: number;
    /**
     * Resources with steps that `--offline` leaves to the first boot. Those with other changes
     * are counted beside the others.
     */
    deferred?: number;
    /** Changed, or in noop would have been. */
    changed: number;
    /** Only previewed within a run that is none, and would have changed. */
    previewed: number;
    /** Resources that failed. */
    failed: number;
    /** Resources that `control` or an unmet requirement held back. */
    skipped: number;
    /** Not chosen by `--only` and `--skip`, and not looked at. */
    not_selected?: number;
    /** Reacted to a change elsewhere; counted beside the others. */
    refreshed: number;
    /** Skipped because a requirement was not met; counted beside the others. */
    requirements_unmet: number;
    /** Results of health checks by status. */
    health_checks: HealthChecks;
    /** Resources by outcome. Child manifests count by their resources, not beside them. */
    outcomes: Counts;
    /** Error messages in all. */
    errors: number;
    /** When the run or session began. */
    start: string;
    /** When its last resource was finished. */
    end: string;
    /** From start to end. */
    duration: number;
  };

  /** A part of the text, and what comes into its place. */
  type TextChange = {
    range: [number, number, number, number];
    text: string;
  };

  /** `event`: the turn of a resource is over. */
  type TurnDone = {
    /** The event as sessions record it. */
    event: Event;
    row: Row;
    /** The outcomes so far. */
    counts: Counts;
  };

  /** `resource`: the turn of a resource begins. */
  type TurnStarted = {
    number: number;
    type: string;
    name: string;
  };

  /** A type. */
  type Type = {
    /** Its name. */
    name: string;
    /** What it is for. */
    about: string;
    /** The values of `ensure`. */
    ensure: EnsureForm;
    /** The names of its providers. */
    providers: string[];
    /** A command line that uses it. */
    example?: string;
    /** Its properties. */
    fields: Field[];
  };

  /** All types with their properties. */
  type Types = {
    /** The types. */
    types: Type[];
    /** The names of the properties that all types have. */
    common: string[];
  };

  type UnknownGuards = {
    resource: string;
    file: string;
    /** Why they are not known. */
    unknown: string;
  };

  /** A resource that refers to another one. */
  type User = {
    /** `type#name` */
    resource: string;
    /** `require` or `subscribe`. */
    relation: string;
  };

  /** One variable of the environment. */
  type Variable = {
    environ: Record<string, string>;
  };

  /** The verb of a step. */
  type Verb =
    | "created"
    | "updated"
    | "removed"
    | "started"
    | "stopped"
    | "restarted"
    | "reloaded"
    | "installed"
    | "upgraded"
    | "downgraded"
    | "executed"
    | "rendered"
    | "locked"
    | "unlocked";

  /** What a text means. */
  type YamlValue = {
    value: any;
  };
}
