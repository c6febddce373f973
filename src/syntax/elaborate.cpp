// A definition and its equations; the library of definitions.
#include "syntax/elaborate.hpp"

#include <fmt/format.h>

#include "support/limits.hpp"
#include "support/ranges.hpp"
#include "support/result.hpp"
#include "syntax/elaborator.hpp"

namespace napkin {
namespace {
/// Calls f on the node and on everything below it.
void walk(const AstNode& node, const std::function<void(const AstNode&)>& f) {
    f(node);
    const auto below = [&](const std::vector<AstNode>& nodes) {
        for (const AstNode& child : nodes) walk(child, f);
    };
    if (const auto* n = std::get_if<AstIndexed>(&node.v)) below(n->indices);
    if (const auto* n = std::get_if<AstCall>(&node.v)) below(n->arguments);
    if (const auto* n = std::get_if<AstPrefix>(&node.v)) below(n->operands);
    if (const auto* n = std::get_if<AstUnary>(&node.v)) below(n->operand);
    if (const auto* n = std::get_if<AstBinary>(&node.v)) below(n->operands);
}

}  // namespace

// ---- the library
// -----------------------------------------------------------------------------------------------------------

Library::Library(const Module& module, const AstDefinition* main, Library* parent, Diagnostics& diagnostics, Budget& budget)
    : module_(module), main_(main), parent_(parent), diagnostics_(diagnostics), budget_(budget) {
    for (const AstDefinition& d : module.definitions) {
        if (d.name.text.empty()) continue;
        if (is_builtin(d.name.text)) {
            diagnostics.error(Code::builtin_redefined, d.name.range,
                              fmt::format("{} is a function of the language", d.name.text), "another name");
        }
        Entry entry;
        entry.definition = &d;
        const auto [at, added] = entries_.try_emplace(d.name.text, std::move(entry));
        if (added) continue;
        diagnostics
            .error(Code::duplicate_definition, d.name.range, fmt::format("{} is defined twice", d.name.text),
                   "one definition of a name")
            .notes.push_back({at->second.definition->name.range, "the first stands here"});
    }
}

bool Library::defines(const std::string& name) const {
    if (const auto parts = gradient_parts(name)) return defines(parts->front());
    return entries_.contains(name) || (parent_ && parent_->defines(name));
}

bool Library::too_deep(const std::string& name) const {
    const auto at = entries_.find(name);
    return at != entries_.end() && at->second.state == State::unknown && depth_ > limits::max_call_depth;
}

Library::State Library::state(const std::string& name) const {
    const auto at = entries_.find(name);
    if (at != entries_.end()) return at->second.state;
    return parent_ ? parent_->state(name) : State::unknown;
}

const Template* Library::find(const std::string& name) {
    const auto at = entries_.find(name);
    if (at == entries_.end()) {
        if (const auto parts = gradient_parts(name)) return gradient(name, *parts);
        return parent_ ? parent_->find(name) : nullptr;
    }
    Entry& entry = at->second;
    if (entry.state == State::running) return nullptr;
    if (entry.state == State::unknown) {
        entry.state = State::running;
        ++depth_;
        entry.result = elaborate(*entry.definition, *this);
        --depth_;
        entry.state = State::done;
    }
    return &entry.result;
}

const Template* Library::gradient(const std::string& name, const std::vector<std::string>& parts) {
    const Template* of = find(parts.front());
    if (!of || !of->ok) return of;
    Entry entry{nullptr, State::done, gradient_of(*of, {parts.begin() + 1, parts.end()})};
    return &entries_.emplace(name, std::move(entry)).first->second.result;
}

std::vector<std::string> Library::names() const {
    std::vector<std::string> out = parent_ ? parent_->names() : std::vector<std::string>{};
    for (const auto& [name, entry] : entries_)
        if (entry.definition) out.push_back(name);
    return out;
}

std::set<std::string> axis_like_names(const AstDefinition& definition) {
    std::set<std::string> names;
    const auto words = [&](const std::vector<AstWord>& all) {
        for (const AstWord& word : all) names.insert(word.text);
    };
    for (const AstArray& a : definition.arguments) words(a.axes);
    for (const AstArray& a : definition.results) words(a.axes);
    for (const AstEquation& e : definition.equations) {
        for (const AstArray& a : e.targets) words(a.axes);
        if (!e.body) continue;
        walk(*e.body, [&](const AstNode& node) {
            if (const auto* n = std::get_if<AstName>(&node.v)) names.insert(n->name);
            if (const auto* n = std::get_if<AstPrefix>(&node.v)) words(n->axes);
        });
    }
    return names;
}

// ---- one definition
// --------------------------------------------------------------------------------------------------------

Elaborator::Elaborator(const AstDefinition& definition, Library& library)
    : ast_(definition), library_(library), diagnostics_(library.diagnostics()), d_(out_.diagram) {}

Template elaborate(const AstDefinition& definition, Library& library) {
    if (definition.broken) return {};
    return Elaborator(definition, library).run();
}

Template Elaborator::run() {
    const std::size_t before = errors();
    out_.ok = true;
    d_.name = ast_.name.text;
    d_.range = ast_.range;
    collect_names();
    signature();
    for (const AstEquation& e : ast_.equations) equation(e);
    if (ast_.equations.empty()) {
        error(Code::empty_definition, ast_.name.range, fmt::format("{} has no equations", d_.name),
              "an equation for each result, indented below");
    } else {
        check_outputs();
    }
    finish();
    if (errors() > before || some_equation_lost_) out_.ok = false;
    return std::move(out_);
}

void Elaborator::collect_names() {
    const auto axes = [&](const std::vector<AstWord>& words) {
        for (const AstWord& word : words) {
            axis_names_.insert(word.text);
            taken_.insert(word.text);
        }
    };
    for (const AstArray& a : ast_.arguments) {
        axes(a.axes), taken_.insert(a.name.text);
        if (a.rows) axes({*a.rows});
    }
    for (const AstArray& a : ast_.results) axes(a.axes), taken_.insert(a.name.text);
    for (const AstEquation& e : ast_.equations) {
        if (!e.body) some_equation_lost_ = true;
        for (const AstArray& a : e.targets) {
            axes(a.axes);
            taken_.insert(a.name.text);
            targets_.try_emplace(a.name.text, a.name.range);
        }
        if (!e.body) continue;
        walk(*e.body, [&](const AstNode& node) {
            if (const auto* n = std::get_if<AstName>(&node.v)) taken_.insert(n->name);
            if (const auto* n = std::get_if<AstPrefix>(&node.v)) axes(n->axes);
        });
    }
    for (const AstSize& s : ast_.sizes) axes(s.names);
    for (const AstSize& s : library_.module().sizes) {
        for (const AstWord& word : s.names) {
            if (axis_names_.insert(word.text).second) out_.globals.insert(word.text);
            taken_.insert(word.text);
        }
    }
}

void Elaborator::signature() {
    const auto declare = [&](const AstArray& a, ArrayRole role) {
        const std::string what = role == ArrayRole::input ? "argument" : "result";
        if (const auto at = arrays_.find(a.name.text); at != arrays_.end()) {
            diagnostics_
                .error(Code::duplicate_argument, a.name.range,
                       fmt::format("{} {} stands twice in the signature", what, a.name.text), "another name")
                .notes.push_back({d_.array(at->second.id).range, "the first stands here"});
            return;
        }
        if (axis_names_.contains(a.name.text) && !out_.globals.contains(a.name.text)) {
            clash(a.name);
        }
        std::vector<AxisId> axes;
        bool shape_known = true;
        for (const AstWord& word : a.axes) {
            if (axes.size() > limits::max_axes_per_array) break;  // reported where the array is added
            const AxisId id = axis(word.text);
            if (!d_.axes[id].range.source) d_.axes[id].range = word.range;
            if (contains(axes, id)) {
                error(Code::duplicate_axis, word.range,
                      fmt::format("{} stands twice among the axes of {}", word.text, a.name.text),
                      "a name of its own for each axis",
                      fmt::format("two axes of one size have two names, and sizes {}_2 = {}", word.text, word.text));
                shape_known = false;
                continue;
            }
            axes.push_back(id);
        }
        shape_known = shape_known && axes.size() <= limits::max_axes_per_array;
        const ArrayId id = add(a.name.text, std::move(axes), a.type, role, a.name.range);
        arrays_[a.name.text] = {id, shape_known};
        if (a.rows) d_.arrays[id].rows = RowNumbers{axis(a.rows->text), a.ascend};
        (role == ArrayRole::input ? d_.inputs : d_.outputs).push_back(id);
        if (role == ArrayRole::input) {
            defined_.insert(a.name.text);
            out_.defaults.push_back(a.default_value ? std::optional(std::get<AstNumber>(a.default_value->v).value)
                                                    : std::nullopt);
        }
    };
    for (const AstArray& a : ast_.arguments) declare(a, ArrayRole::input);
    for (const AstArray& a : ast_.results) declare(a, ArrayRole::output);
}

std::vector<AxisId> Elaborator::target_axes(const AstArray& target) {
    std::vector<AxisId> out;
    for (const AstWord& word : target.axes) {
        if (out.size() > limits::max_axes_per_array) break;  // reported where the array is added
        if (is_array(word.text)) clash(word);
        const AxisId id = axis(word.text);
        if (!d_.axes[id].range.source) d_.axes[id].range = word.range;
        if (contains(out, id)) {
            error(Code::duplicate_axis, word.range,
                  fmt::format("{} stands twice among the indices of {}", word.text, target.name.text),
                  "each index once");
            continue;
        }
        out.push_back(id);
    }
    return out;
}

/// Checks the target against what is known and adds it where it is a temporary. -1: it cannot be defined here.
ArrayId Elaborator::declare_target(const AstArray& target, bool infer_axes) {
    const std::string& name = target.name.text;
    const auto at = arrays_.find(name);
    const bool declared = at != arrays_.end();
    if (declared && d_.array(at->second.id).role == ArrayRole::input) {
        error(Code::assigned_input, target.name.range,
              fmt::format("{} is an argument and cannot be defined again", name), "a name of its own");
        return -1;
    }
    if (defined_.contains(name)) {
        diagnostics_
            .error(Code::defined_twice, target.name.range, fmt::format("{} is defined twice", name),
                   "one equation for each array")
            .notes.push_back({targets_[name], "the first stands here"});
        return -1;
    }
    std::vector<AxisId> axes = target_axes(target);
    if (!declared) {
        if (axis_names_.contains(name) && !out_.globals.contains(name)) {
            clash(target.name);
        }
        const ArrayId id = add(name, std::move(axes), target.type, ArrayRole::temporary, target.name.range);
        arrays_[name] = {id, !target.broken};
        return id;
    }
    const ArrayId id = at->second.id;
    const Array& array = d_.array(id);
    if (target.type && out_.typed[static_cast<std::size_t>(id)] && *target.type != array.type) {
        diagnostics_
            .error(Code::type_conflict, target.type_range, fmt::format("{} is {} here", name, napkin::name(*target.type)),
                   fmt::format("{}, as in the signature", napkin::name(array.type)))
            .notes.push_back({array.range, "declared here"});
    } else if (target.type) {
        d_.arrays[id].type = *target.type;
        out_.typed[static_cast<std::size_t>(id)] = true;
    }
    const bool implied = infer_axes && !target.indexed;  // O = f(Q): O's own axes
    if (!implied && !target.broken && at->second.shape_known && axes != array.axes) {
        diagnostics_
            .error(Code::target_mismatch, target.range, fmt::format("{} does not have the axes of its declaration", name),
                   fmt::format("{}, as in the signature", array_text(id)),
                   axes.size() == array.axes.size() ? ""
                                                    : fmt::format("{} here, {} there", counted(axes.size(), "index"),
                                                                  counted(array.axes.size(), "axis")))
            .notes.push_back({array.range, "declared here"});
        return -1;
    }
    return id;
}

void Elaborator::equation(const AstEquation& e) {
    if (over_limit_ || diagnostics_.full()) return;
    const std::size_t before = errors();
    unbound_.clear();
    target_ = e.targets[0].name.text;
    const bool is_call = e.body &&
                         (std::holds_alternative<AstCall>(e.body->v) || std::holds_alternative<AstPrefix>(e.body->v));
    const auto* call = e.body ? std::get_if<AstCall>(&e.body->v) : nullptr;
    const bool infer = call && (!is_builtin(call->name.text) || call->name.text == "einsum" ||
                                call->name.text == "rearrange" || call->name.text == "reduce");

    std::vector<ArrayId> targets;
    for (const AstArray& target : e.targets) targets.push_back(declare_target(target, infer || !e.body));
    const bool targets_good = !contains(targets, -1);
    const ArrayId first = targets[0];

    Frame frame{{}, e.targets[0].name.text, e.range};
    if (first >= 0) frame.bound = d_.array(first).axes;
    if (!targets_good && first < 0) {
        for (const AstWord& word : e.targets[0].axes) {
            if (frame.bound.size() > limits::max_axes_per_array) break;
            const AxisId id = axis(word.text);
            if (!contains(frame.bound, id)) frame.bound.push_back(id);
        }
    }
    for (std::size_t i = 1; i < targets.size(); ++i) {
        if (targets[i] < 0 || frame.bound.size() > limits::max_axes) continue;
        for (const AxisId id : d_.array(targets[i]).axes) {
            if (!contains(frame.bound, id)) frame.bound.push_back(id);
        }
    }

    // A target whose axes come from the right-hand side.
    const bool open = infer && first >= 0 && !e.targets[0].indexed && d_.array(first).role == ArrayRole::temporary;
    bool done = !e.body;
    if (!done && is_call && call_equation(e, frame, targets)) done = true;
    if (!done && targets.size() > 1) {
        error(Code::result_count, e.targets[1].name.range,
              "several arrays on the left of an equation that gives one value", "one array",
              "only the call of a diagram with several results gives several");
        done = true;
    }
    if (!done && call && infer && is_builtin(call->name.text)) {
        std::vector<AxisId> inferred;
        const std::vector<AxisId>* axes = open || first < 0 ? nullptr : &d_.array(first).axes;
        const auto body = lower_string_call(*call, *e.body, frame, axes, open ? &inferred : nullptr);
        if (body && errors() == before && first >= 0) {
            if (open) d_.arrays[first].axes = inferred;
            define(e, frame, first, *body);
        }
        done = true;
    }
    if (!done) {
        const Body body = lower_body(*e.body, frame);
        if (errors() == before && first >= 0) define(e, frame, first, body);
    }
    for (std::size_t i = 0; i < e.targets.size(); ++i) {
        const std::string& name = e.targets[i].name.text;
        defined_.insert(name);
        const auto at = arrays_.find(name);
        // Without its right-hand side the axes of such a target are not known.
        if (at != arrays_.end() && (errors() > before || !e.body) && !e.targets[i].indexed &&
            d_.array(at->second.id).role == ArrayRole::temporary) {
            at->second.shape_known = false;
        }
    }
}

void Elaborator::define(const AstEquation& e, const Frame&, ArrayId target, const Body& body) {
    Array& array = d_.arrays[target];
    if (!out_.typed[at(target)] && array.role == ArrayRole::temporary) array.type = infer_type(body.expr);
    add_equation({target, body.reduce, body.reduce_axes, body.expr, e.range, {}});
}

/// An equation that is the call of a diagram. False: it is none, or one that counts as an expression.
bool Elaborator::call_equation(const AstEquation& e, const Frame& frame, const std::vector<ArrayId>& targets) {
    const auto* call = std::get_if<AstCall>(&e.body->v);
    const auto* prefix = std::get_if<AstPrefix>(&e.body->v);
    const AstWord& name = call ? call->name : prefix->name;
    if (is_builtin(name.text)) return false;
    if (is_array(name.text) && !is_function(name.text)) return false;  // reported as an expression
    const std::size_t before = errors();
    const Template* callee = find_callee(name, frame);
    if (!callee) return true;
    const std::size_t results = callee->diagram.outputs.size();
    if (results != targets.size()) {
        error(Code::result_count, results > targets.size() ? name.range : e.targets[results].name.range,
              fmt::format("{} gives {}, and {} on the left", name.text, counted(results, "result"),
                          targets.size() == 1 ? "one array stands" : fmt::format("{} arrays stand", targets.size())),
              counted(results, "array"));
        return true;
    }
    if (callee->elementwise && call) return false;
    if (contains(targets, -1)) return true;

    Binding b;
    b.callee = callee;
    b.name = name;
    b.range = e.body->range;
    std::vector<ArrayId> open;  // targets whose axes come from the call
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (!e.targets[i].indexed && d_.array(targets[i]).role == ArrayRole::temporary && call)
            open.push_back(targets[i]);
    }
    const bool good = call ? bind_call(*call, *e.body, frame, open.empty() ? &targets : nullptr, b)
                           : bind_prefix(*prefix, *e.body, frame, b);
    if (!good || errors() > before) return true;
    for (const AxisId own : b.axes.ids()) {
        if (b.axes[own] < 0 || result_stays(b, own)) continue;
        SourceRange range = b.range;
        for (const AstWord& word : prefix ? prefix->axes : std::vector<AstWord>{})
            if (axis(word.text) == b.axes[own]) range = word.range;
        check_consumed(b.axes[own], range, name.text, frame);
    }
    if (errors() > before) return true;

    const std::vector<std::set<AxisId>> axes = result_axes(b);
    std::vector<ArrayId> direct(targets.size(), -1);
    for (std::size_t i = 0; i < targets.size(); ++i) {
        Array& array = d_.arrays[targets[i]];
        if (contains(open, targets[i])) {
            const Array& result = callee->diagram.array(callee->diagram.outputs[i]);
            for (const AxisId a : result.axes) array.axes.push_back(map_axis(b, a));
        }
        const std::set<AxisId> own(array.axes.begin(), array.axes.end());
        for (const AxisId a : axes[i]) {
            if (own.contains(a)) continue;
            error(Code::unbound_index, b.range,
                  fmt::format("the result of {} has the axis {}, which is no index of {}", name.text, d_.axis(a).name,
                              array.name),
                  fmt::format("{} among the indices of {}", d_.axis(a).name, array.name));
        }
        const ArrayId output = callee->diagram.outputs[i];
        const bool other_type = out_.typed[at(targets[i])] && callee->typed[at(output)] &&
                                callee->diagram.array(output).type != array.type;
        if (own == axes[i] && !other_type) direct[i] = targets[i];
    }
    if (errors() > before) return true;
    const std::vector<ArrayId> arrays = instantiate(b, frame, direct);
    // A result that is stored in another type, or spread over more axes, is copied.
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (direct[i] >= 0 || errors() > before) continue;
        Body copy;
        copy.expr = read_self(d_, arrays[i]);
        define(e, frame, targets[i], copy);
    }
    return true;
}

void Elaborator::check_outputs() {
    for (const ArrayId id : d_.outputs) {
        const Array& array = d_.array(id);
        if (defined_.contains(array.name) || some_equation_lost_ || over_limit_) continue;
        std::vector<std::string> others;
        for (const auto& [name, range] : targets_) {
            const auto at = arrays_.find(name);
            if (at != arrays_.end() && d_.array(at->second.id).role == ArrayRole::temporary) others.push_back(name);
        }
        error(Code::never_defined, array.range, fmt::format("no equation defines the result {}", array.name),
              fmt::format("an equation {} = …", array_text(id)), did_you_mean(array.name, others));
    }
}

void Elaborator::check_schedule() {
    // Axis names of a schedule are checked against the main diagram only, by parse_diagram.
    d_.schedule = ast_.schedule;
}

void Elaborator::finish() {
    apply_sizes();
    check_size_agreement();
    check_schedule();
    const auto scalar = [&](const Array& a) { return a.axes.empty(); };
    const auto map = [](const Equation& e) { return !e.reduce; };
    // The type of a number that may be left out says how precise it is, not what the result is.
    const auto untyped = [&](const Array& a) {
        const auto id = static_cast<std::size_t>(&a - d_.arrays.data());
        const auto input = find(d_.inputs, ArrayId::of(id));
        return !out_.typed[id] || (input != d_.inputs.end() && out_.defaults[at(input - d_.inputs.begin())]);
    };
    out_.elementwise = d_.outputs.size() == 1 && all_of(d_.arrays, scalar) && all_of(d_.equations, map) &&
                       d_.axes.empty() && all_of(d_.arrays, untyped);
    if (over_limit_) out_.ok = false;
}

void apply_defaults(Template& t) {
    Diagram& d = t.diagram;
    std::vector<ArrayId> renumbered(d.arrays.size());
    std::vector<Array> kept;
    std::map<ArrayId, double> values;
    for (std::size_t i = 0; i < d.inputs.size(); ++i) {
        if (t.defaults[i]) values[d.inputs[i]] = *t.defaults[i];
    }
    if (values.empty()) return;
    for (const ArrayId i : d.arrays.ids()) {
        if (values.contains(i)) continue;
        renumbered[i] = ArrayId::of(kept.size());
        kept.push_back(std::move(d.arrays[i]));
    }
    d.arrays = std::move(kept);
    std::erase_if(d.inputs, [&](ArrayId id) { return values.contains(id); });
    for (ArrayId& id : d.inputs) id = renumbered[at(id)];
    for (ArrayId& id : d.outputs) id = renumbered[at(id)];
    for (Equation& e : d.equations) {
        e.target = renumbered[at(e.target)];
        e.body = transform(e.body, [&](const Expr& node) {
            const auto* r = as<Read>(node);
            if (!r) return node;
            if (const auto at = values.find(r->array); at != values.end()) return constant(at->second);
            return read(renumbered[at(r->array)], r->indices);
        });
    }
    t.typed.clear();
    t.defaults.assign(d.inputs.size(), std::nullopt);
}

}  // namespace napkin
