import PrefetchCommands

@main
struct PrefetchWorkerProgram {
    static func main() async {
        CommandRunner.prepare()
        await CommandRunner.main(WorkerCommand.self)
    }
}
