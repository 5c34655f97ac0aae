// The views: Preact, its hooks, signals, and htm for markup without a compiler.
export { h, render } from "preact";
export { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { Signal, batch, computed, effect, signal, useSignalEffect } from "@preact/signals";
export { html } from "htm/preact";
export type { ComponentChildren, ComponentType } from "preact";
export type { ReadonlySignal } from "@preact/signals";
