import Demonstration
import PrefetchCommands

@main
struct PrefetchOrigin {
    static func main() async {
        CommandRunner.prepare()
        await CommandRunner.main(OriginCommand.self)
    }
}
