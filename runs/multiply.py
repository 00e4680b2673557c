#!/usr/bin/env python3
"""More pairs with numbers, times, prices and names, for a corpus that has few of them.

    runs/multiply.py TESTED <train.tsv >more.tsv

Reads and writes lines "English TAB German". Where both sides of a pair have the same numbers, as digits or as words, or
the same names, they become others, alike on both sides, so that a translator learns to copy what it has never seen:
half of the names are invented. Some become parts of sentences ("Um 7:48 Uhr?"), or two that are joined ("Ich heiße ...
und komme aus ..."). Always the same for the same lines. TESTED: sentences that the translator is tested by,
the first column of a file; no pair has one of them.
"""
import random
import re
import sys

NUMBERS, NAMES, PARTS, JOINED = 26000, 40000, 3000, 6000  # pairs that are made

ONES_DE = "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn " \
    "siebzehn achtzehn neunzehn".split()
ONES_EN = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " \
    "seventeen eighteen nineteen".split()
TENS_DE = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
TENS_EN = "twenty thirty forty fifty sixty seventy eighty ninety".split()

WORDS = [{w: i for i, w in enumerate(words) if i > 1} for words in (ONES_EN, ONES_DE)]
for tens, (en, de) in enumerate(zip(TENS_EN, TENS_DE), 2):
    for ones in range(10):
        WORDS[0][f"{en}-{ONES_EN[ones]}" if ones else en] = 10 * tens + ones
        WORDS[1][f"{ONES_DE[ones]}und{de}" if ones else de] = 10 * tens + ones
WORDS[0]["a hundred"] = WORDS[1]["hundert"] = 100
WORDS[0]["a thousand"] = WORDS[1]["tausend"] = 1000

# A number of a text: 2:30 and 2.30 Uhr; 250,000 and 250.000; 3.4 and 3,4; 1954; thirty-two and zweiunddreißig.
NUMBER = [re.compile(r"(?<![\w.,:])(?:(?P<time>\d{1,2}%s\d\d)%s|(?P<digits>\d{1,3}(?:%s\d{3})+|\d+)(?P<part>%s\d+)?"
                     r"(?P<rank>%s)?|(?P<word>%s))(?![\w]|[.,:]\d)" % (*form, "|".join(sorted(words, key=len)[::-1])))
          for form, words in zip(((":", "", ",", r"\.", "st|nd|rd|th"), ("[:.]", r"(?= Uhr)", r"\.", ",", r"\.(?= )")),
                                 WORDS)]

# Names that English and German write alike: common ones, as anybody would list them.
MEN = """
Aaron Adam Adrian Albert Alexander Alfred Ali Ahmed Andreas Anton Armin Arne Arthur Axel Ben Benedikt Benjamin Bernd
Bernhard Boris Bruno Carl Carlos Christian Christoph Clemens Daniel David Dennis Detlef Dieter Dirk Dominik Edgar
Eduard Edward Elias Emil Enrico Erich Erik Ernst Eugen Fabian Felix Ferdinand Finn Florian Frank Franz Friedrich Fritz
Georg George Gerald Gerd Gerhard Giovanni Gregor Günter Gustav Hannes Hans Harald Harry Heiko Heinrich Heinz Helmut
Hendrik Henry Herbert Hermann Hiroshi Holger Horst Hubert Hugo Ingo Ivan Jack Jakob James Jan Jannik Jason Jens Jean
Jim Joachim Jochen Johann Johannes Jonas Jonathan Jörg Josef Joshua Juan Julian Julius Jürgen Karl Kenji Kevin Klaus
Konrad Konstantin Kurt Lars Leo Leon Leonard Levin Linus Lothar Luca Ludwig Luis Lukas Magnus Malte Manfred Manuel
Marcel Marco Marcus Mario Mark Markus Martin Matthias Max Maximilian Mehmet Michael Mike Milan Mohammed Moritz Nick
Nico Niklas Nils Noah Norbert Olaf Oliver Oscar Oskar Otto Pascal Patrick Paul Pedro Peter Philipp Pierre Rainer Ralf
Raphael Reinhard Richard Robert Robin Roland Rolf Roman Rudolf Rüdiger Samuel Sebastian Siegfried Simon Stefan Steffen
Stephan Sven Takeshi Theo Theodor Thomas Thorsten Till Tim Timo Tobias Toni Torben Udo Ulf Ulrich Uwe Valentin Victor
Viktor Vincent Volker Walter Werner Wilhelm William Wolfgang Yusuf"""
WOMEN = """
Agnes Alexandra Alice Alina Alma Amelie Andrea Anette Angela Angelika Anita Anja Anke Anna Anne Annika Antje Antonia
Astrid Aylin Barbara Beate Bettina Bianca Birgit Brigitte Britta Carla Carmen Carolin Charlotte Christiane Christina
Clara Claudia Cornelia Dagmar Daniela Diana Dorothea Doris Edith Elena Elfriede Elisabeth Elke Ella Elsa Emilia Emily
Emma Erika Esther Eva Fatima Fiona Franziska Frida Gabriele Gerda Gertrud Gisela Giulia Greta Gudrun Hanna Hannah
Hedwig Heidi Heike Helena Helga Hilde Ida Ilse Ina Inge Ingeborg Ingrid Irene Irina Iris Isabel Jacqueline Jana Janine
Jasmin Jessica Johanna Josephine Judith Julia Juliane Jutta Karin Karla Karolina Katharina Kathrin Katja Kerstin Klara
Lara Laura Lea Lena Leonie Lieselotte Lilly Lina Linda Lisa Lotte Lucia Luisa Luise Lydia Magdalena Maja Manuela Mara
Margarete Margot Maria Marianne Marie Marina Marion Marlene Martha Martina Mathilda Melanie Mia Michaela Michelle Mira
Miriam Monika Nadine Nadja Natalie Nele Nicole Nina Nora Olga Olivia Paula Pauline Petra Pia Rebecca Regina Renate
Ricarda Rita Ronja Rosa Rosemarie Ruth Sabine Sabrina Sandra Sara Sarah Saskia Selma Sigrid Silke Silvia Simone Sofia
Sonja Sophia Sophie Stefanie Susanne Svenja Sylvia Tamara Tanja Tatjana Teresa Theresa Tina Ulrike Ursula Ute Valerie
Vanessa Vera Verena Veronika Victoria Viktoria Waltraud Yuki Yvonne"""
FAMILIES = """
Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Koch Bauer Richter Klein Wolf
Schröder Neumann Schwarz Zimmermann Braun Krüger Hofmann Hartmann Lange Schmitt Werner Krause Meier Lehmann Schmid
Schulze Maier Köhler Herrmann König Walter Mayer Huber Kaiser Fuchs Peters Lang Scholz Möller Weiß Jung Hahn Schubert
Vogel Friedrich Keller Günther Frank Berger Winkler Roth Beck Lorenz Baumann Franke Albrecht Schuster Simon Ludwig
Böhm Winter Kraus Martin Schumacher Krämer Vogt Stein Jäger Otto Sommer Groß Seidel Heinrich Brandt Haas Schreiber
Graf Schulte Dietrich Ziegler Kuhn Kühn Pohl Engel Horn Busch Bergmann Thomas Voigt Sauer Arnold Wolff Pfeiffer Ernst
Lindner Hübner Kramer Franz Beyer Peter Jansen Kern Barth Wenzel Hein Lutz Fink Bock Ott Riedel Fiedler Hermann
Kirchner Schwab Marx Renner Vetter Bender Stark Nagel Reuter Held Thiel Ritter Rieger Göbel Ebert Kunze Steiner Smith
Johnson Brown Jones Miller Davis Taylor Wilson Clark Tanaka Suzuki Sato Yamada Ito Nguyen Garcia Lopez Martinez Rossi
Ferrari Yilmaz Kaya Demir Novak Kowalski Andersen Nielsen"""
PLACES = """
Berlin Hamburg Frankfurt Stuttgart Leipzig Dortmund Essen Bremen Dresden Düsseldorf Duisburg Bochum Wuppertal
Bielefeld Bonn Mannheim Karlsruhe Augsburg Wiesbaden Aachen Kiel Lübeck Rostock Magdeburg Halle Erfurt Mainz Freiburg
Kassel Potsdam Saarbrücken Hagen Oldenburg Heidelberg Darmstadt Regensburg Würzburg Ingolstadt Göttingen Wolfsburg Ulm
Heilbronn Offenbach Pforzheim Bamberg Bayreuth Trier Jena Weimar Dessau Cottbus Schwerin Greifswald Stralsund
Flensburg Konstanz Passau Salzburg Graz Linz Innsbruck Klagenfurt Bregenz Bern Basel Luzern Lausanne Zug London Paris
Madrid Barcelona Valencia Sevilla Porto Amsterdam Rotterdam Utrecht Stockholm Göteborg Oslo Bergen Helsinki Tampere
Riga Vilnius Tallinn Dublin Manchester Liverpool Oxford Cambridge Bristol Leeds Glasgow Edinburgh Lyon Marseille
Toulouse Bordeaux Lille Nantes Budapest Bratislava Zagreb Ljubljana Split Istanbul Ankara Izmir Boston Chicago Seattle
Denver Dallas Houston Miami Atlanta Detroit Phoenix Portland Toronto Montreal Vancouver Ottawa Sydney Melbourne
Brisbane Perth Auckland Bangkok Hanoi Jakarta Manila Osaka Kyoto Nagoya Sapporo Kobe Lima Bogotá Santiago Caracas
Nairobi Dakar Lagos Casablanca Tunis Beirut Teheran Karachi Delhi Mumbai"""


def rank(n):
    return "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")


class Number:
    """One of a text: its kind and value, by which those of both sides are matched, and where it is."""

    def __init__(self, match, side):
        time, digits, part, ordinal, word = match.group("time", "digits", "part", "rank", "word")
        self.begin, self.end = match.span()
        self.rank = bool(ordinal)
        self.part = part[1:] if part else None
        if time:
            self.kind, self.value = "time", tuple(map(int, re.split("[:.]", time)))
        elif word:
            self.kind, self.value = "number", WORDS[side][word]
        else:
            self.value = int(re.sub(r"\D", "", digits))
            self.kind = "year" if 1000 < self.value < 2100 and digits.isdigit() and not part else "number"

    def key(self):
        return self.kind, self.value, self.part


def numbers_of(text, side):
    return [Number(m, side) for m in NUMBER[side].finditer(text)]


def matched(en, de):
    """The numbers of both sides, in the order of the German ones; None where they are not the same."""
    a, b = numbers_of(en, 0), numbers_of(de, 1)
    by_key = {x.key(): x for x in a}
    if not b or len(a) != len(b) or len(by_key) != len(a) or set(by_key) != {y.key() for y in b}:
        return None
    return [(by_key[y.key()], y) for y in b]


def whole(r):
    """A whole number: mostly of two digits."""
    low, high = r.choices(((2, 10), (10, 100), (100, 1000), (1000, 10000), (10000, 1000000)), (2, 10, 5, 2, 1))[0]
    return r.randrange(low, high)


def grouped(n, mark, r):
    return f"{n:,}".replace(",", mark) if n >= 10000 or (n >= 1000 and r.random() < 0.5) else str(n)


def other_number(pair, text, r):
    """What the number becomes: English, German. text: what follows the German one."""
    en, de = pair
    if de.kind == "time":
        hour, minute = r.randrange(24 if r.random() < 0.5 else 12), r.randrange(60)
        return f"{hour}:{minute:02}", f"{hour}{r.choice(':::.')}{minute:02}"
    if de.kind == "year":
        n = r.randrange(1700, 2030)
        return str(n), str(n)
    if de.rank or en.rank:
        n = r.randrange(1, 32)
        return f"{n}{rank(n) if en.rank else ''}", f"{n}{'.' if de.rank else ''}"
    if re.match(" Uhr", text):
        n = r.randrange(1, 13)
        return str(n), str(n)
    price = re.match(r" (?:Euro|Dollar|Pfund|Franken)\b", text)
    if de.part or (price and r.random() < 0.25):
        n, part = r.randrange(1, 500), f"{r.randrange(100):02}" if price else str(r.randrange(1, 10))
        return f"{n}.{part}", f"{n},{part}"
    n = whole(r)
    return grouped(n, ",", r), grouped(n, ".", r)


def replace(text, spans):
    """text with other words in place of spans: [(begin, end, word)]."""
    for begin, end, word in sorted(spans, reverse=True):
        text = text[:begin] + word + text[end:]
    return text


def signs(en, de, r):
    """69 euros, 69 Euro -> €69, 69 €: now and then."""
    if r.random() < 0.3 and re.search(r"\d euros?\b", en) and re.search(r"\d Euro\b", de):
        return re.sub(r"([\d.,]*\d) euros?\b", r"€\1", en), re.sub(r"(\d) Euro\b", r"\1 €", de)
    return en, de


def other_numbers(en, de, r):
    pairs = matched(en, de)
    if not pairs:
        return None
    made = [other_number(p, de[p[1].end:], r) for p in pairs]
    en, de = (replace(text, [(p[i].begin, p[i].end, m[i]) for p, m in zip(pairs, made)])
              for i, text in enumerate((en, de)))
    return signs(en, de, r)


class Names:
    """Names of a kind: those that there are, and as many invented ones, whose letters follow three others as in those
    (a Markov chain)."""

    def __init__(self, text):
        self.names, self.next = text.split(), {}
        for name in self.names:
            marked = "^^^" + name + "$"
            for i in range(3, len(marked)):
                self.next.setdefault(marked[i - 3:i], []).append(marked[i])

    def invent(self, r):
        while True:
            marked = "^^^"
            while marked[-1] != "$" and len(marked) < 16:
                marked += r.choice(self.next[marked[-3:]])
            if marked[-1] == "$" and len(marked) > 6:
                return marked[3:-1]

    def draw(self, r):
        return self.invent(r) if r.random() < 0.5 else r.choice(self.names)


KINDS = {"men": Names(MEN), "women": Names(WOMEN), "places": Names(PLACES), "families": Names(FAMILIES)}
NAMES_IN_TEXTS = (("Tom", "Tom", "men"), ("Mary", "Maria", "women"), ("John", "John", "men"), ("Boston", "Boston", "places"),
                  ("London", "London", "places"), ("Paris", "Paris", "places"), ("Berlin", "Berlin", "places"))
TITLED = [re.compile(titles + r"([A-ZÄÖÜ]\w+)") for titles in
          (r"\b(?:Mr|Mrs|Ms|Miss|Dr)\.? ", r"\b(?:Herrn?|Frau|Fräulein|Dr\.|Doktor) ")]


def names_of(en, de):
    """Names that both sides have, as often: [(kind, where in English, where in German)]."""
    found = []
    x, y = list(TITLED[0].finditer(en)), list(TITLED[1].finditer(de))
    if len(x) == len(y) == 1 and x[0][1] == y[0][1]:
        found.append(("families", [x[0].span(1)], [y[0].span(1)]))
    for name_en, name_de, kind in NAMES_IN_TEXTS:
        x = [m.span() for m in re.finditer(rf"\b{name_en}\b", en)]
        y = [m.span() for m in re.finditer(rf"\b{name_de}(?=s?\b)", de)]
        if x and len(x) == len(y) and not found[:1] == [("families", x, y)]:
            found.append((kind, x, y))
    return found


def other_names(en, de, r):
    """The pair with other names; None where it has none."""
    spans = [], []
    for kind, *where in names_of(en, de):
        name = KINDS[kind].draw(r)
        if name[-1] in "sxzß" and any(de[end:end + 1] == "s" for _, end in where[1]):
            continue  # its genitive is written otherwise
        for side, places in zip(spans, where):
            side.extend((begin, end, name) for begin, end in places)
    return (replace(en, spans[0]), replace(de, spans[1])) if spans[0] else None


# Parts of sentences that can stand alone: a time with its preposition, an amount.
PREPOSITIONS = {"um": "at", "vor": "before", "nach": "after", "bis": "until", "gegen": "around", "seit": "since"}
AMOUNT = r"\d[\d.,]*"
PARTS_OF = [(re.compile(rf"\b{de} (\d+[:.]\d\d|\d+) Uhr\b"),
             re.compile(rf"\b{en} (\d+:\d\d|\d+)(?: o'clock)?(?![:\d])")) for de, en in PREPOSITIONS.items()]
PARTS_OF += [(re.compile(rf"{AMOUNT} {de}\b"), re.compile(rf"{AMOUNT} {en}\b")) for de, en in
             (("Euro", "euros"), ("Dollar", "dollars"), ("Jahre", "years"), ("Minuten", "minutes"), ("Stunden", "hours"))]


def part_of(en, de, r):
    """A part of a pair that can stand alone, with an end mark; None where it has none."""
    for of_de, of_en in PARTS_OF:
        x, y = of_en.search(en), of_de.search(de)
        if x and y:
            mark = r.choice(".?!")
            return tuple(t[0].upper() + t[1:] + mark for t in (x[0].rstrip(".,"), y[0].rstrip(".,")))
    return None


def joined(first, second):
    """Two sentences of one speaker in one, whose subject German says once."""
    return f"{first[0][:-1]} and {second[0]}", f"{first[1][:-1]} und {second[1][len('Ich '):]}"


def main():
    tested = {line.split("\t")[0] for line in open(sys.argv[1], encoding="utf-8")}
    pairs = [line.rstrip("\n").split("\t")[:2] for line in sys.stdin.buffer.read().decode("utf-8").split("\n") if line]
    with_numbers = [p for p in pairs if matched(*p)]
    with_digits = [p for p in with_numbers if re.search(r"\d", p[0]) and re.search(r"\d", p[1])]
    with_times = [p for p in with_digits if any(de.kind == "time" for _, de in matched(*p))]
    sources = [with_times, with_digits, with_numbers, with_numbers]
    with_names = {kind: [p for p in pairs if any(n[0] == kind for n in names_of(*p))] for kind in KINDS}
    with_parts = [p for p in with_digits if part_of(*p, random.Random(0))]
    # What stands behind a comma, or behind "und ich", may have another subject.
    of_one = [p for p in pairs if re.fullmatch(r"Ich (?!.*\bund ich\b)[^,]{5,40}\.", p[1])
              and re.fullmatch(r"(I|My)\b[^,]*\.", p[0])]
    second = [p for p in of_one if p[0].startswith("I") and len(p[1].split()) > 2]
    named = [p for p in of_one if names_of(*p)], [p for p in second if names_of(*p)]
    introduced = [p for p in named[0] if p[1].startswith("Ich heiße ")]
    r = random.Random(1)

    def write(made):
        if made and made[1] not in tested:
            print(*made, sep="\t")

    for i in range(NUMBERS):
        en, de = r.choice(sources[i % len(sources)])
        if r.random() < 0.5:
            en, de = other_names(en, de, r) or (en, de)
        write(other_numbers(en, de, r))
    for i in range(NAMES):
        write(other_names(*r.choice(with_names[("men", "women", "places", "families")[i % 4]]), r))
    for _ in range(PARTS):
        made = other_numbers(*r.choice(with_parts), r)
        write(made and part_of(*made, r))
    for i in range(JOINED):
        made = joined(r.choice((introduced, named[0], of_one)[i % 3]), r.choice(named[1] if i % 2 else second))
        write(other_names(*made, r) or made)


main()
