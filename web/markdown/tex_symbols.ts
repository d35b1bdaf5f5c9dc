/** Parse a table in which TeX commands alternate with the characters that they stand for. */
function table(text: string): ReadonlyMap<string, string> {
  const words = text.trim().split(/\s+/);
  return new Map(
    words.flatMap((word, at) => (at % 2 === 0 ? [[word, words[at + 1] ?? ""] as const] : [])),
  );
}

/** Commands for Greek and other letters. */
export const LETTERS = table(`
alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ
lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ
phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ
Phi Φ Psi Ψ Omega Ω infty ∞ partial ∂ nabla ∇ hbar ℏ ell ℓ Re ℜ Im ℑ aleph ℵ beth ℶ emptyset ∅
varnothing ∅ imath ı jmath ȷ wp ℘ angle ∠ triangle △ square □ Box □ blacksquare ■ star ⋆ top ⊤ bot ⊥
ldots … dots … cdots ⋯ vdots ⋮ ddots ⋱ dotsc … dotsb ⋯ prime ′ degree ° S § P ¶ checkmark ✓
clubsuit ♣ diamondsuit ♢ heartsuit ♡ spadesuit ♠ flat ♭ sharp ♯ natural ♮ $ $ % % & & # # _ _
pounds £ euro € R ℝ`);

/** Commands for operators, relations, arrows and delimiters. */
export const OPERATORS = table(`
pm ± mp ∓ times × div ÷ cdot ⋅ ast ∗ circ ∘ bullet ∙ oplus ⊕ ominus ⊖ otimes ⊗ odot ⊙ oslash ⊘
wedge ∧ land ∧ vee ∨ lor ∨ neg ¬ lnot ¬ cap ∩ cup ∪ setminus ∖ sqcap ⊓ sqcup ⊔ uplus ⊎ dagger †
leq ≤ le ≤ geq ≥ ge ≥ neq ≠ ne ≠ ll ≪ gg ≫ equiv ≡ sim ∼ simeq ≃ approx ≈ cong ≅ propto ∝ asymp ≍
leqslant ⩽ geqslant ⩾ prec ≺ succ ≻ preceq ⪯ succeq ⪰ lesssim ≲ gtrsim ≳ doteq ≐ triangleq ≜
in ∈ notin ∉ ni ∋ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ subsetneq ⊊ supsetneq ⊋ nsubseteq ⊈
mid ∣ nmid ∤ parallel ∥ perp ⟂ vdash ⊢ dashv ⊣ models ⊨ vDash ⊨ forall ∀ exists ∃ nexists ∄
therefore ∴ because ∵ colon : to → rightarrow → leftarrow ← gets ← leftrightarrow ↔ mapsto ↦
Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ implies ⟹ impliedby ⟸ iff ⟺ longrightarrow ⟶
longleftarrow ⟵ Longrightarrow ⟹ Longleftarrow ⟸ Longleftrightarrow ⟺ longmapsto ⟼ uparrow ↑
downarrow ↓ Uparrow ⇑ Downarrow ⇓ updownarrow ↕ nearrow ↗ searrow ↘ swarrow ↙ nwarrow ↖
hookrightarrow ↪ hookleftarrow ↩ rightharpoonup ⇀ leftharpoonup ↼ rightleftharpoons ⇌ leadsto ⇝
langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ lvert | rvert | vert | lVert ‖ rVert ‖ Vert ‖
| ‖ { { } } lbrace { rbrace } lbrack [ rbrack ] backslash \\ / / int ∫ iint ∬ iiint ∭ oint ∮ surd √`);

/** Large operators, whose limits are drawn below and above them. */
export const BIG = table(`sum ∑ prod ∏ coprod ∐ bigcup ⋃ bigcap ⋂ bigvee ⋁ bigwedge ⋀ bigoplus ⨁
bigotimes ⨂ bigodot ⨀ bigsqcup ⨆ biguplus ⨄`);

/** Function names in upright letters; the first ones have limits below them. */
export const LIMITS = new Set(
  "lim limsup liminf max min sup inf argmax argmin det gcd Pr".split(" "),
);
export const NAMES = new Set(
  `${[...LIMITS].join(" ")} sin cos tan cot sec csc sinh cosh tanh coth arcsin arccos arctan log ln lg exp dim ker hom deg arg mod lcm`.split(
    " ",
  ),
);

/** Accents above or below a letter. */
export const ACCENTS =
  table(`hat ^ widehat ^ bar ¯ overline ¯ vec → overrightarrow → overleftarrow ←
dot ˙ ddot ¨ tilde ~ widetilde ~ check ˇ breve ˘ acute ´ grave \` mathring ˚ overbrace ⏞`);
export const BELOW = table("underline _ underbrace ⏟");

/** Commands for spaces, with their widths in em. */
export const SPACES = table(`, 0.17 : 0.22 > 0.22 ; 0.28 ! -0.17 quad 1 qquad 2 thinspace 0.17
enspace 0.5`);

/** Code points at which an alphabet's capitals, small letters and digits begin; 0: it has none. */
export const ALPHABETS = new Map<string, readonly [number, number, number]>(
  Object.entries({
    mathbf: [0x1d400, 0x1d41a, 0x1d7ce],
    boldsymbol: [0x1d468, 0x1d482, 0x1d7ce],
    bm: [0x1d468, 0x1d482, 0x1d7ce],
    mathcal: [0x1d49c, 0x1d4b6, 0],
    mathscr: [0x1d49c, 0x1d4b6, 0],
    mathfrak: [0x1d504, 0x1d51e, 0],
    mathbb: [0x1d538, 0x1d552, 0x1d7d8],
    mathsf: [0x1d5a0, 0x1d5ba, 0x1d7e2],
    mathtt: [0x1d670, 0x1d68a, 0x1d7f6],
  }),
);

/** Letters that Unicode encoded elsewhere before it added their alphabets. */
export const OLDER: ReadonlyMap<number, string> = new Map(
  Object.entries({
    0x1d49d: "ℬ",
    0x1d4a0: "ℰ",
    0x1d4a1: "ℱ",
    0x1d4a3: "ℋ",
    0x1d4a4: "ℐ",
    0x1d4a7: "ℒ",
    0x1d4a8: "ℳ",
    0x1d4ad: "ℛ",
    0x1d4ba: "ℯ",
    0x1d4bc: "ℊ",
    0x1d4c4: "ℴ",
    0x1d506: "ℭ",
    0x1d50b: "ℌ",
    0x1d50c: "ℑ",
    0x1d515: "ℜ",
    0x1d51d: "ℨ",
    0x1d53a: "ℂ",
    0x1d53f: "ℍ",
    0x1d545: "ℕ",
    0x1d547: "ℙ",
    0x1d548: "ℚ",
    0x1d549: "ℝ",
    0x1d551: "ℤ",
  }).map(([code, letter]) => [Number(code), letter]),
);

/** The delimiters that environments put around their rows. */
export const ENVIRONMENTS = new Map<string, readonly [string, string]>(
  Object.entries({
    matrix: ["", ""],
    smallmatrix: ["", ""],
    pmatrix: ["(", ")"],
    bmatrix: ["[", "]"],
    Bmatrix: ["{", "}"],
    vmatrix: ["|", "|"],
    Vmatrix: ["‖", "‖"],
    cases: ["{", ""],
    array: ["", ""],
    aligned: ["", ""],
    align: ["", ""],
    alignat: ["", ""],
    split: ["", ""],
    gather: ["", ""],
    gathered: ["", ""],
    multline: ["", ""],
    equation: ["", ""],
    eqnarray: ["", ""],
  }),
);
