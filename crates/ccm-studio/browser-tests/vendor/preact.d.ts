export type { ComponentChildren, ComponentType } from "preact";
export type { ReadonlySignal } from "@preact/signals";
