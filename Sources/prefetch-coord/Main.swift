import ArgumentParser
import Demonstration
import PrefetchCommands

@main
struct PrefetchCoord {
    static func main() async {
        CommandRunner.prepare()
        // Installed once, with symbolic links beside it: the programs share nearly all of their code.
        let others: [any AsyncParsableCommand.Type] = [WorkerCommand.self, OriginCommand.self]
        let name = CommandLine.arguments.first?.split(separator: "/").last.map(String.init)
        let other = others.first { $0.configuration.commandName == name }
        await CommandRunner.main(other ?? CoordCommand.self)
    }
}
