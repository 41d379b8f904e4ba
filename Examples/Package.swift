// swift-tools-version: 6.2
import PackageDescription

// Programs that use the library. The suite of the package above builds and runs them too.
let package = Package(
    name: "Examples",
    dependencies: [.package(name: "prefetch", path: "..")],
    targets: [
        .executableTarget(name: "ExamplePrefetch", dependencies: [.product(name: "WebImage", package: "prefetch")]),
        .executableTarget(
            name: "ExampleWorker",
            dependencies: [
                .product(name: "WebImage", package: "prefetch"), .product(name: "Prefetch", package: "prefetch"),
            ]),
        .executableTarget(name: "ExampleFollower", dependencies: [.product(name: "Prefetch", package: "prefetch")]),
    ]
)
