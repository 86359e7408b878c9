# SPDX-License-Identifier: Apache-2.0
"""BLEU and chrF as sacreBLEU computes them: make_metric_table.py > heed/text/testdata/metrics.tsv.

It needs sacrebleu from PyPI, which nothing else here does:

  python3 -m venv metric-env && metric-env/bin/pip install sacrebleu==2.6.0
  metric-env/bin/python tools/make_metric_table.py > heed/text/testdata/metrics.tsv

Lines of the table, with tabs between columns: 'words', a sentence, its 13a tokens with spaces between them; 'corpus',
BLEU, its four precisions, its brevity penalty, chrF; then, for that corpus, 'pair', a hypothesis, a reference.
"""
import warnings

from sacrebleu.metrics import BLEU, CHRF

# What cuts words, and what does not.
SENTENCES = [
    "The animal didn't cross the street because it was too tired.",
    "Prices rose by 3.5%, to $1,250.00 (a record); 2-3 shops closed.",
    "Wait... what?! No -- that can't be, it's a well-known fact.",
    "¿Dónde está la biblioteca? ¡Está a 2,5 km, señor!",
    "Er sagte: „Das kostet 20 €“ – und ging.",
    "a/b [c] {d} e_f g^h `i` ~j |k| <l> m@n.org #5 *6* +7 =8",
    "x &quot;quoted&quot; &amp;lt; &lt;tag&gt; &apos; AT&T",
    "one<skipped>two 1990-2000 5- -5 a-b 10-",
    "v1.2.3 .5 5. ,5 5, 1,2,3. .. ,, .,",
    "e.g. U.S.A. 3.b 4,c é.è é,5 5,é",
    "\u00a0non\u00a0breaking \u2003wide\u3000ideographic\u2028line ",
    "",
    ".",
    "   ",
    "漢字、かな。 Русский текст, ещё один. Ελληνικά·",
    "don't 'quoted' \"double\" back\\slash",
]

NEARLY = [
    (
        "The animal didn't cross the street because it was too tired.",
        "The animal did not cross the street because it was too tired.",
    ),
    ("El niño compró la manzana y la comió.", "El niño compró la manzana y se la comió."),
    ("Two old men are walking their dogs in the park.", "Two elderly men walk their dogs in a park."),
    ("She has 1,250 books, 3.5 of which she read.", "She has 1,250 books, of which she read 3.5."),
    ("¿Dónde está mi perro?", "¿Dónde está el perro?"),
]

# Each shows a rule: no smoothing, one order or more without a match, too short, too long, nothing in common, nothing.
CORPORA = [
    NEARLY,
    [(reference, reference) for _, reference in NEARLY],
    [(hypothesis[: len(hypothesis) // 2], reference) for hypothesis, reference in NEARLY],
    [(hypothesis + " " + hypothesis, reference) for hypothesis, reference in NEARLY],
    [("the the the the the the the", "The cat is on the mat, the black one.")],
    [("a cat sat on a mat", "the dog sat on the rug"), ("yes", "no")],
    [("cat the mat", "the cat sat on the mat today")],
    [("cat mat", "cat mat")],
    [("xyz", "abc def")],
    [("", "something is expected here")],
    [("something was said", "")],
    [("ab", "a"), ("a", "ab"), ("abcdefgh", "abc")],
    [("", ""), ("one two three four five", "one two three four six")],
    [("El gato duerme .", "el gato duerme."), ("ÉL COMIÓ", "Él comió")],
    [
        ("Zwei Männer stehen am Herd und kochen Essen.", "Zwei Männer stehen am Herd und bereiten Essen zu."),
        ("Ein Hund läuft.", "Ein brauner Hund rennt."),
    ],
    [("漢字とかな。", "漢字、かな。"), ("Ещё один\u00a0текст", "Ещё один текст")],
]


def check(text):
    assert "\t" not in text and "\n" not in text, text
    return text


def row(*columns):
    print("\t".join(check(column) for column in columns))


def main():
    warnings.simplefilter("error")
    bleu, chrf = BLEU(), CHRF()
    for sentence in SENTENCES:
        row("words", sentence, bleu._preprocess_segment(sentence))
    for corpus in CORPORA:
        hypotheses, references = [list(side) for side in zip(*corpus)]
        score = bleu.corpus_score(hypotheses, [references])
        numbers = [score.score, *score.precisions, score.bp, chrf.corpus_score(hypotheses, [references]).score]
        row("corpus", *[repr(float(number)) for number in numbers])
        for pair in corpus:
            row("pair", *pair)


if __name__ == "__main__":
    main()
