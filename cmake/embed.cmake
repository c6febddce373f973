# Puts text files into the library as C++ string literals, so that the tool needs no files at run time. The C++ file is
# written by cmake/embed_script.cmake at build time and again whenever one of the texts changes.

# napkin_embed_text(target function header file): defines `std::string_view napkin::function()`, the text of the one
# file, or an empty text where there is none; `header` declares it.
function(napkin_embed_text target function header files)
    napkin_embed_(${target} ${function} ${header} text "${files}")
endfunction()

# napkin_embed_list(target function header files): defines `const std::vector<EmbeddedText>& napkin::function()`, in
# order of the files' names.
function(napkin_embed_list target function header files)
    napkin_embed_(${target} ${function} ${header} list "${files}")
endfunction()

function(napkin_embed_ target function header form files)
    set(output "${PROJECT_BINARY_DIR}/generated/${function}.cpp")
    set(script "${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake")
    # The list of files is part of the command, so a file that comes or goes rewrites the output too.
    add_custom_command(OUTPUT "${output}"
        COMMAND ${CMAKE_COMMAND} "-DOUTPUT=${output}" -DFUNCTION=${function} -DHEADER=${header} -DFORM=${form} "-DFILES=${files}"
            -P "${script}"
        DEPENDS ${files} "${script}"
        COMMENT "Embedding ${function}"
        VERBATIM)
    target_sources(${target} PRIVATE "${output}")
endfunction()
