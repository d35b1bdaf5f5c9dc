/** A worker script with an engine, in one file, for pages without a bundler. */
import { serve } from "../worker/serve.js";

serve();
