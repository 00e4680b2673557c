// Which items come next, and which of the past ones weigh, from C++.
//
//     c++ -std=c++20 recommend.cpp $(pkg-config --cflags --libs attend_model) -o recommend
//     ./recommend FOLDER tent camera mat          # a folder that recommend.c has written
#include <attend_recommend.h>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

static void check(att_status status)
{
    if (status != ATT_OK)
        throw std::runtime_error(att_error(nullptr));
}

// The mean of all layers and heads: of the last token to each of `items`, the last of which the model was given
static std::vector<float> mean_of_layers(const att_trace *trace, std::size_t items)
{
    att_trace_info info = {};
    info.size = sizeof info;
    check(att_trace_describe(trace, &info));
    const std::size_t tokens = static_cast<std::size_t>(info.source + info.target);
    const std::size_t given = tokens - (info.source > 0); // an encoder has a mask, too
    std::vector<float> row(tokens), weights(items);
    for (int64_t i = 0; i < info.attentions; i++) {
        check(att_trace_weights(trace, i, -1, static_cast<int64_t>(tokens) - 1, 1, row.data()));
        for (std::size_t k = 0; k < given; k++)
            weights[items - given + k] += row[k] / static_cast<float>(info.attentions);
    }
    return weights;
}

class Recommender
{
  public:
    explicit Recommender(const char *folder)
    {
        att_ctx *ctx = nullptr;
        check(att_open(&ctx, nullptr));
        ctx_.reset(ctx);
        att_recommender *m = nullptr;
        check(att_recommender_open(ctx, folder, NULL, &m));
        m_.reset(m);
    }

    int32_t find(const char *id) const
    {
        const int64_t item = att_recommender_find_item(m_.get(), id);
        if (item < 0)
            throw std::runtime_error(std::string(id) + " is not an item of the model");
        return static_cast<int32_t>(item);
    }

    std::vector<std::pair<std::string, float>> next(const std::vector<int32_t> &history, int64_t k) const
    {
        const int64_t offsets[] = {0, static_cast<int64_t>(history.size())};
        att_recommend_options options = {};
        options.size = sizeof options;
        options.k = k;
        options.exclude_seen = true;
        att_recommendation r;
        check(att_recommend(m_.get(), 1, history.data(), offsets, &options, &r));
        std::vector<std::pair<std::string, float>> list;
        for (int64_t i = 0; i < r.k && r.items[i] >= 0; i++)
            list.emplace_back(att_recommender_item(m_.get(), r.items[i]), r.scores[i]);
        att_recommendation_free(ctx_.get(), &r);
        return list;
    }

    // Attention of the last token to each item of the history, the mean of all layers and heads
    std::vector<float> attention(const std::vector<int32_t> &history) const
    {
        att_trace *made = nullptr;
        check(att_recommender_trace(m_.get(), static_cast<int64_t>(history.size()), history.data(), nullptr, &made));
        const std::unique_ptr<att_trace, Free> trace(made);
        return mean_of_layers(trace.get(), history.size());
    }

  private:
    struct Free {
        void operator()(att_ctx *ctx) const { att_close(ctx); }
        void operator()(att_recommender *m) const { att_recommender_free(m); }
        void operator()(att_trace *t) const { att_trace_free(t); }
    };
    std::unique_ptr<att_ctx, Free> ctx_;
    std::unique_ptr<att_recommender, Free> m_;
};

int main(int n, char **argument)
{
    if (n < 3)
        return std::fprintf(stderr, "usage: recommend FOLDER ITEM...\n"), 2;
    try {
        const Recommender m(argument[1]);
        std::vector<int32_t> history;
        for (int i = 2; i < n; i++)
            history.push_back(m.find(argument[i]));
        for (const auto &[item, score] : m.next(history, 3))
            std::printf("%8.4f  %s\n", static_cast<double>(score), item.c_str());
        const std::vector<float> weights = m.attention(history);
        for (std::size_t i = 0; i < weights.size(); i++)
            std::printf("%7.0f%%  %s\n", 100 * static_cast<double>(weights[i]), argument[i + 2]);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
