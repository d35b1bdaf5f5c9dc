import { serve } from "../src/worker.js";

serve();
