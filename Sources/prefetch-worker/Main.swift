import PrefetchCommands

@main
struct PrefetchWorkerProgram {
    static func main() async {
        await CommandRunner.main(WorkerCommand.self)
    }
}
