# Completion of grove in fish: in ~/.config/fish/completions, or loaded with: grove completion fish | source
function __grove_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    for line in ($program complete $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            set -l current (commandline -ct)
            set -l head (string match -r -- '^--[^=]*=' $current)
            for file in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $current))
                echo "$head$file"
            end
        else
            echo $line
        end
    end
end
complete -c grove -f -a '(__grove_complete)'
