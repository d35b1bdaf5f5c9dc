import{c as r}from"./part-OPMSMDXL.js";import"./part-AXPRDSLS.js";r();
