internal import Queue
package import WebImage

extension BatchCache {
    package init(_ disk: DiskCache) {
        self.init(id: disk.folder.id ?? "-", host: ThisHost.name, directory: disk.directory)
    }
}
