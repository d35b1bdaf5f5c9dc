import{c as r}from"./part-7K5GDQUA.js";import"./part-AXPRDSLS.js";r();
