/**
 * The functions that the page of Wherry's server uses; scripts/bundle_server_page.js copies them
 * into it.
 */
export { copyButton } from "./elements.js";
export { MarkdownView } from "./view.js";
