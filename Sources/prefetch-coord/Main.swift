import PrefetchCommands

@main
struct PrefetchCoord {
    static func main() async {
        await CommandRunner.main(CoordCommand.self)
    }
}
