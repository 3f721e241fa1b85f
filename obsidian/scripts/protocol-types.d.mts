export interface ProtocolSchema {
  version: number;
}
export function protocolTypes(schema: ProtocolSchema): string;
export function readSchema(): ProtocolSchema;
export function readTypes(): string;
