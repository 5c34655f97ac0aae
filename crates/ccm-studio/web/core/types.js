// What goes over the wire, as types. Nothing of this runs.

/** `[line, column, line, column]` from 0, columns in UTF-16 units. @typedef {[number, number, number, number]} Range */
/** @typedef {(string | number)[]} Path */

/**
 * @typedef {object} Studio
 * @property {string} version
 * @property {string} commit
 * @property {string} host
 * @property {string} user
 * @property {boolean} root whether it runs as root
 * @property {string} directory
 * @property {string} [file]
 * @property {boolean} apply_allowed
 * @property {boolean} read_only
 * @property {Record<string, number>} limits
 */

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} doc
 * @property {string[]} aliases
 * @property {string} shape
 * @property {{shape: string, items?: any, fields?: Field[]}} [items]
 * @property {Field[]} [fields]
 * @property {string} [format]
 * @property {string[]} [words]
 * @property {string} [group]
 * @property {"parse" | "keys" | "deferred" | "never"} phase
 * @property {boolean} secret
 * @property {boolean} required
 * @property {string} [required_unless]
 * @property {string} [required_unless_set]
 * @property {string[]} conflicts
 */

/**
 * @typedef {object} Type
 * @property {string} name
 * @property {string} about
 * @property {{default: string, words?: string[]}} ensure
 * @property {string[]} providers
 * @property {string} [example]
 * @property {Field[]} fields
 */

/** @typedef {{types: Type[], common: string[]}} Types */

/**
 * @typedef {object} FileEntry
 * @property {string} path
 * @property {"manifest" | "template" | "data" | "other"} kind
 * @property {number} size
 * @property {string} modified
 * @property {boolean} writable
 * @property {number} [resources]
 * @property {number} [errors]
 */

/**
 * @typedef {object} FileText
 * @property {string} path
 * @property {string} text with LF
 * @property {string} digest
 * @property {"lf" | "crlf" | "mixed"} eol
 * @property {boolean} bom
 * @property {boolean} writable
 * @property {{code: string, message: string}[]} notes
 */

/** @typedef {Record<string, any> & {op: string}} Operation */
/** @typedef {{title: string, operations: Operation[]}} Fix */

/**
 * @typedef {object} Finding
 * @property {"error" | "warning"} severity
 * @property {string} message
 * @property {string} file
 * @property {number | null} line from 1
 * @property {number | null} column from 1
 * @property {Range} [range]
 * @property {string} [resource]
 * @property {string} [property]
 * @property {string} [hint]
 * @property {string} frame
 * @property {Fix[]} fixes
 */

/**
 * @typedef {object} OutlineEntry
 * @property {number} number
 * @property {string} type
 * @property {string} name
 * @property {string} [resolved]
 * @property {string} [alias]
 * @property {string} [ensure]
 * @property {Path} path
 * @property {Range} range
 * @property {{path: Path, defaults: Path | null}} block
 * @property {string[]} require
 * @property {string[]} subscribe
 * @property {number} findings
 */

/**
 * A resource that the text does not hold: of a child manifest, or made by a
 * template. With `note` alone, why there is none.
 * @typedef {object} InnerEntry
 * @property {number | null} parent the number of the resource above it in the text
 * @property {number} depth
 * @property {string} [note]
 * @property {string} type
 * @property {string} name
 * @property {string} [alias]
 * @property {string} [ensure]
 * @property {string[]} require
 * @property {string[]} subscribe
 * @property {string} file
 * @property {number | null} line from 1
 * @property {boolean} rendered
 */

/**
 * @typedef {object} Check
 * @property {boolean} valid
 * @property {number} revision
 * @property {Finding[]} findings
 * @property {OutlineEntry[]} outline
 * @property {{path: Path, defaults: any}[]} blocks those with defaults
 * @property {InnerEntry[]} inner
 * @property {number} inner_left_out
 * @property {import("./runs.js").Guard[]} guards
 * @property {number} micros
 */

/**
 * @typedef {object} Property
 * @property {any} [own]
 * @property {{value: any, origin?: string, range?: Range}} [default]
 * @property {any} [shown]
 * @property {any} [resolved]
 * @property {Range} [range]
 * @property {boolean} editable
 * @property {string} [reason]
 * @property {number} [aliases] how many places change with it
 * @property {boolean} [hidden] whether there is a secret that is not sent
 * @property {boolean} [unknown] whether the type does not have it
 * @property {string} [suggestion] what may have been meant by an unknown one
 */

/**
 * @typedef {object} Form
 * @property {string} type
 * @property {string} name
 * @property {Record<string, Property>} properties
 * @property {({resource: string, relation?: string, kind?: string} | string)[]} used_by
 * @property {number} number
 * @property {number} total
 * @property {Path} path
 */

/** @typedef {{range: Range, text: string}} Change */

/**
 * @typedef {object} Run
 * @property {string} id
 * @property {"plan" | "apply"} mode
 * @property {string} path
 * @property {string} digest
 * @property {string} state
 * @property {string} started
 * @property {any} [report]
 * @property {any} [diffs]
 */

/** `{}` is this machine. @typedef {Record<string, any>} FactsChoice */

export {};
