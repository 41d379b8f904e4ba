import PrefetchCommands

@main
struct PrefetchCoord {
    static func main() async {
        CommandRunner.prepare()
        await CommandRunner.main(CoordCommand.self)
    }
}
