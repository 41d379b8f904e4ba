import PrefetchCommands

@main
struct PrefetchOrigin {
    static func main() async {
        await CommandRunner.main(OriginCommand.self)
    }
}
