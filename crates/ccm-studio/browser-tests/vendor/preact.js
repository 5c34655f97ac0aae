// The views: Preact, its hooks, signals, and htm for markup without a compiler.
export { Component, Fragment, createContext, createRef, h, render } from "preact";
export { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { Signal, batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export { html } from "htm/preact";
