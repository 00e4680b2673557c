#!/usr/bin/env python3
"""More pairs with numbers, times, prices and names, for a corpus that has few of them.

    runs/multiply.py HELD_OUT <train.tsv >more.tsv

Reads and writes lines "English TAB German". Where both sides of a pair have the same numbers, as digits or as words, or
the same names, they become others, alike on both sides, so that a translator learns to copy what it has never seen.
Always the same for the same lines. The names of HELD_OUT, the second column of a file of sentences that the
translator is tested by, are never put in; nor is any pair whose German is one of these sentences.
"""
import random
import re
import sys

NUMBERS, NAMES = 26000, 14000  # pairs that are made

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

# Names that English and German write alike.
MEN = """Adam Albert Alexander Alfred Andreas Axel Ben Benjamin Bernd Boris Bruno Carl Christian Daniel Dieter Dominik
Edgar Edward Elias Emil Erik Ernst Eugen Finn Florian Frank Fritz George Georg Gerald Gregor Günter Gustav Harald Harry
Hans Heinrich Henry Hermann Holger Hugo Ivan Jack Jakob James Jan Jason Jens Joachim Johannes Josef Julian Karl Kevin
Klaus Konrad Kurt Leo Leon Leonard Linus Ludwig Manfred Marcel Marco Mario Mark Matthias Max Maximilian Michael Moritz
Nick Nico Niklas Noah Norbert Oliver Oscar Otto Patrick Peter Ralf Richard Roland Rolf Rudolf Sam Samuel Sebastian
Stefan Sven Theo Theodor Thomas Tim Timo Tobias Toni Udo Ulrich Uwe Victor Viktor Walter Werner Wilhelm William Wolfgang
Yusuf Ali Ahmed Mehmet Hiroshi Kenji Takeshi Pedro Luis Juan Carlos Pierre Jean Giovanni Luca""".split()
WOMEN = """Alexandra Alice Alina Amelie Andrea Angela Anja Anke Anna Antonia Astrid Barbara Beate Bettina Birgit
Brigitte Carla Carolin Charlotte Christina Claudia Clara Daniela Diana Doris Edith Elena Elisabeth Ella Elsa Emily Emma
Erika Eva Fiona Franziska Frida Gabriele Gerda Gisela Hanna Heidi Heike Helga Ida Inge Ingrid Irene Isabel Jana Jasmin
Jessica Johanna Judith Jutta Karin Karolina Katharina Katja Klara Kerstin Laura Lara Lea Leonie Linda Lisa Luise Luisa
Manuela Mara Margarete Maria Marie Marlene Martha Martina Melanie Mia Michelle Mira Monika Nadine Natalie Nicole Nora
Olga Olivia Paula Petra Pia Rebecca Regina Renate Ronja Rosa Ruth Sabine Sabrina Sandra Sara Sarah Silke Simone Sofia
Sonja Stefanie Susanne Svenja Sylvia Tanja Teresa Theresa Ulrike Ute Vanessa Vera Verena Victoria Yvonne Yuki Fatima
Aylin Carmen Lucia Giulia""".split()
FAMILIES = """Müller Schmidt Fischer Weber Meyer Wagner Schulz Hoffmann Schäfer Koch Bauer Richter Klein Wolf Schröder
Neumann Schwarz Zimmermann Braun Krüger Hofmann Hartmann Lange Schmitt Werner Krause Meier Lehmann Schmid Schulze Maier
Köhler Herrmann König Walter Mayer Huber Kaiser Fuchs Peters Lang Scholz Möller Weiß Jung Hahn Schubert Friedrich Keller
Günther Frank Berger Winkler Roth Beck Lorenz Baumann Franke Albrecht Schuster Simon Ludwig Böhm Winter Kraus Schumacher
Krämer Vogt Stein Jäger Otto Sommer Groß Seidel Heinrich Brandt Haas Schreiber Graf Schulte Dietrich Ziegler Kuhn Kühn
Pohl Engel Horn Busch Bergmann Thomas Voigt Sauer Arnold Wolff Pfeiffer Smith Johnson Brown Jones Miller Taylor Tanaka
Suzuki Sato Nguyen Garcia Rossi Yilmaz Novak Jansen Andersen""".split()
PLACES = """Berlin Hamburg Frankfurt Stuttgart Leipzig Dortmund Essen Bremen Dresden Düsseldorf Duisburg Bochum Wuppertal
Bielefeld Bonn Karlsruhe Mannheim Augsburg Wiesbaden Aachen Kiel Lübeck Rostock Magdeburg Erfurt Mainz Freiburg Kassel
Potsdam Heidelberg Ulm Trier Jena Weimar Bamberg Bayreuth Konstanz Salzburg Graz Linz Innsbruck Bern Basel Luzern
London Paris Madrid Barcelona Valencia Amsterdam Rotterdam Stockholm Oslo Helsinki Dublin Manchester Liverpool Oxford
Cambridge Lyon Marseille Toulouse Budapest Istanbul Ankara Boston Chicago Seattle Denver Dallas Houston Miami Toronto
Montreal Vancouver Sydney Melbourne Bangkok Osaka Kyoto Nagoya Sapporo Lima Bogotá Santiago Nairobi Dakar""".split()


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


def invented(r):
    """A name that nobody has seen."""
    n = r.choice((2, 2, 2, 3))
    first = "B Br C Ch D Dr F Fr G Gr H J K Kl L M N P Ph Q R S Sch St T Th Tr V W X Y Z".split()
    middle = "b d f g k l ll lm ln m n nd nn ng r rd rt rl s ss st t th tt v w x z ck ch".split()
    vowels = "a e i o u a e i o ä ö ü y ie ei au ou ee".split()
    name = r.choice(first) if r.random() < 0.8 else ""
    for i in range(n):
        name += r.choice(vowels) + (r.choice(middle) if i + 1 < n or r.random() < 0.5 else "")
    return name[0].upper() + name[1:]


def name_of(pool, r):
    return invented(r) if r.random() < 0.4 else r.choice(pool)


TITLE_EN, TITLE_DE = r"(?:Mr|Mrs|Ms|Miss|Dr)\.? ", r"(?:Herrn?|Frau|Fräulein|Dr\.|Doktor) "


def other_names(en, de, pools, r):
    """People and towns that both sides have once each become others; None: there are none."""
    a, b = [], []
    for who_en, who_de, pool in (("Tom", "Tom", "men"), ("Mary", "Maria", "women"), ("John", "John", "men"),
                                 ("Boston", "Boston", "places"), ("London", "London", "places"),
                                 ("Paris", "Paris", "places"), ("Berlin", "Berlin", "places")):
        x = list(re.finditer(rf"\b{who_en}\b", en))
        y = list(re.finditer(rf"\b{who_de}(?=s?\b)", de))
        if len(x) != len(y) or not x:
            continue
        name = name_of(pools[pool], r)
        if name[-1] in "sxzß" and re.search(rf"\b{who_de}s\b", de):
            continue  # its genitive is written otherwise
        a += [(m.start(), m.end(), name) for m in x]
        b += [(m.start(), m.end(), name) for m in y]
    x, y = list(re.finditer(rf"{TITLE_EN}([A-Z]\w+)", en)), list(re.finditer(rf"{TITLE_DE}([A-Z]\w+)", de))
    if len(x) == len(y) == 1 and x[0][1] == y[0][1] and not a:
        name = name_of(pools["families"], r)
        a.append((*x[0].span(1), name))
        b.append((*y[0].span(1), name))
    return (replace(en, a), replace(de, b)) if a else None


def main():
    held_out = [line.rstrip("\n").split("\t") for line in open(sys.argv[1], encoding="utf-8")]
    never = {name for line in held_out for name in line[1].split()}
    taken = {line[0] for line in held_out}
    pools = {key: sorted(set(pool) - never) for key, pool in
             (("men", MEN), ("women", WOMEN), ("families", FAMILIES), ("places", PLACES))}
    pairs = [line.rstrip("\n").split("\t")[:2] for line in sys.stdin.buffer.read().decode("utf-8").split("\n") if line]
    r = random.Random(1)
    with_numbers = [p for p in pairs if matched(*p)]
    with_digits = [p for p in with_numbers if re.search(r"\d", p[0]) and re.search(r"\d", p[1])]
    with_times = [p for p in with_digits if any(de.kind == "time" for _, de in matched(*p))]
    sources = [with_times, with_digits, with_numbers, with_numbers]
    with_names = [p for p in pairs if other_names(*p, pools, r)]

    def write(made):
        if made and made[1] not in taken and not never & set(re.findall(r"\w+", " ".join(made))):
            print(*made, sep="\t")

    for i in range(NUMBERS):
        en, de = r.choice(sources[i % len(sources)])
        if r.random() < 0.5:
            en, de = other_names(en, de, pools, r) or (en, de)
        write(other_numbers(en, de, r))
    for _ in range(NAMES):
        write(other_names(*r.choice(with_names), pools, r))


main()
