#include "support/threads.hpp"

#include <cerrno>
#include <cstring>

namespace napkin {

Thread::~Thread() {
    if (work_) ::pthread_join(id_, nullptr);
}

int Thread::start(std::function<void()> work) {
    pthread_attr_t attributes;
    if (const int why = ::pthread_attr_init(&attributes); why != 0) return why;
    ::pthread_attr_setstacksize(&attributes, stack_bytes);
    work_ = std::make_unique<std::function<void()>>(std::move(work));
    const int why = ::pthread_create(
        &id_, &attributes,
        [](void* given) -> void* {
            (*static_cast<std::function<void()>*>(given))();
            return nullptr;
        },
        work_.get());
    ::pthread_attr_destroy(&attributes);
    if (why != 0) work_.reset();
    return why;
}

Diagnostic no_resource(const std::string& code, const std::string& what, int error_number) {
    Diagnostic out{.code = code, .message = what + ": " + std::strerror(error_number), .exit_code = ExitCode::machine_lacks};
    if (error_number == EAGAIN)
        out.hint = "the number of processes and threads may be limited (ulimit -u), or memory (ulimit -v)";
    if (error_number == ENOMEM) out.hint = "memory ran out, or is limited (ulimit -v)";
    if (error_number == EMFILE || error_number == ENFILE) out.hint = "the number of open files is limited (ulimit -n)";
    return out;
}

}  // namespace napkin
