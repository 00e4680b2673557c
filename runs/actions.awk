# Prints a log of actions, made by rules: user, item and second, with tabs between them, one user after the other.
#     awk -v actions=100000 -v items=1000 -f runs/actions.awk >log.tsv
# Items are popular as in Zipf's law, of exponent 1. A user has 5 actions or more, 10 in the mean, as a power law has them,
# in sessions of some minutes, days apart. A session has a topic, a hundredth of all items; half of its items are one of
# two that follow the item before, so that there is something to learn. The same log in each awk: all numbers are whole and
# below 2^53, but for the logarithms of popularity.

function draw() { # uniform in (0, 1): Park and Miller's generator
    state = state * 16807 % 2147483647
    return state / 2147483647
}
function popular(n) { return int(exp(draw() * log(n))) } # 1 .. n - 1, k as often as 1/k

BEGIN {
    state = 1
    topics = 100
    each = items / topics
    while (done < actions) {
        user++
        left = 5 / sqrt(draw())
        time = 1700000000 + int(draw() * 30000000)
        session = 0
        for (left = left > 1000 ? 1000 : int(left); left > 0 && done < actions; left--) {
            if (--session <= 0) {
                session = 2 + int(draw() * 8)
                topic = popular(topics) * each
                time += 3600 + int(draw() * 1000000)
                item = topic + popular(each)
            } else if (draw() < 0.5) {
                item = topic + (item * 7 + (draw() < 0.7 ? 3 : 11)) % each
            } else {
                item = topic + popular(each)
            }
            time += 1 + int(draw() * 300)
            print "u" user "\ti" item "\t" time
            done++
        }
    }
}
