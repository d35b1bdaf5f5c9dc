/**
 * The turns of a conversation, and where they are stored: a tab has its own, which survives a
 * reload; a new tab continues the conversation that was stored last.
 */
const KEY = "wherry.turns";

export interface Turn {
  readonly role: "user" | "assistant";
  content: string;
  pending?: boolean;
  failure?: string;
  note?: string;
}

/** Store the turns. */
export function keepTurns(turns: readonly Turn[]): void {
  const text = JSON.stringify(turns.map(({ pending: _, ...turn }) => turn));
  for (const storage of [sessionStorage, localStorage]) {
    try {
      storage.setItem(KEY, text);
    } catch {
      // the conversation is too long to store, and its older version would be wrong
      storage.removeItem(KEY);
    }
  }
}

/** Return the stored turns of this tab, else those that were stored last. */
export function keptTurns(): Turn[] {
  try {
    const text = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? "[]";
    return JSON.parse(text) as Turn[];
  } catch {
    return [];
  }
}
