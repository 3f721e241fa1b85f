import { installDom } from "./dom";

if (typeof window !== "undefined") installDom(window as Window & typeof globalThis);
