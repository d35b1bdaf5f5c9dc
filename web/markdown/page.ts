/** What the server's own page takes: scripts/bundle_server_page.js puts it there. */
export { copyButton } from "./elements.js";
export { MarkdownView } from "./view.js";
