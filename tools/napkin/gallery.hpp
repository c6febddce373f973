#pragma once
// A gallery: a list of figures, each drawn by what `napkin draw` or `napkin chart` calls, beside it or compared with
// what is there.
#include "napkin/command.hpp"

namespace napkin::cli {

struct GalleryRequest {
    Options common;              ///< its file is the list
    std::string output;          ///< a folder; empty: the list's own
    std::int64_t width = 0;      ///< of a page, in pixels; 0: the default
    std::string format = "svg";  ///< or "tikz", "dot", which leave the charts out
    bool check = false;          ///< compare, and write nothing
};

/// Each figure has a number, a name, a caption and parts: steps of programs, drawn on one picture, or one chart.
ExitCode draw_gallery(const GalleryRequest& request);

}  // namespace napkin::cli
