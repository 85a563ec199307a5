// Fuzz target: the cache file of FirebaseFirestore. A damaged file is replaced, and then every operation succeeds. An
// accepted column is written again, and reads back as the same value.

import FirestoreModel
import Foundation

@testable import FirebaseFirestore

private let database = DatabaseName(project: "p")

/// The first byte selects the reader; the rest is a column, or patches of a file.
func fuzzFirestoreCache(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let bytes = Data(input.dropFirst())
  switch first % 4 {
  case 0: try fuzzFile(patches: Array(bytes))
  case 1:
    guard let writes = try? WriteColumn.decode(bytes, in: database),
      let column = try? WriteColumn.encode(writes)
    else { return }
    let again = try require(try? WriteColumn.decode(column, in: database), "written writes are not read")
    try require(again == writes, "written writes are other writes")
  case 2:
    guard let index = try? FieldIndex(column: String(decoding: bytes, as: UTF8.self)) else { return }
    let again = try require(try? FieldIndex(column: index.column), "a written index is not read")
    try require(again == index, "a written index is another index")
  default:
    guard let time = try? ModelTimestamp(column: bytes) else { return }
    try require(time.column == bytes, "a written time is another time")
  }
}

/// The bytes of a file with a document, a target, an index and a queued write.
private let original: Data? = try? withTemporaryFolder { folder in
  var store = LocalStore(persistence: try DiskPersistence(CacheFolder(folder), database: database))
  defer { store.persistence.close() }
  try useEveryTable(&store)
  _ = try store.write([Write(.update(name("d1"), fields: ["x": .integer(1)]))], at: .epoch)
  store.persistence.close()
  return try Data(contentsOf: folder.appendingPathComponent("cache.sqlite"))
}

/// Opens a file with patches: each is an offset of four bytes, a count of one byte, and that many bytes.
private func fuzzFile(patches: [UInt8]) throws {
  var file = try require(original, "no cache can be made")
  var rest = patches[...]
  while rest.count > 5 {
    let offset = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    let count = Int(rest[rest.startIndex + 4])
    for (index, byte) in rest.dropFirst(5).prefix(count).enumerated() {
      file[(offset + index) % file.count] = byte
    }
    rest = rest.dropFirst(5 + count)
  }
  try withTemporaryFolder { folder in
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try file.write(to: folder.appendingPathComponent("cache.sqlite"))
    var store = LocalStore(persistence: try DiskPersistence(CacheFolder(folder), database: database))
    defer { store.persistence.close() }
    // The first rounds may fail because of damage in different parts of the file. After them every operation succeeds.
    for _ in 0..<3 { try? useEveryTable(&store) }
    do { try useEveryTable(&store) } catch {
      throw PropertyFailure(description: "a damaged cache stays damaged: \(error)")
    }
  }
}

private func withTemporaryFolder<T>(_ body: (URL) throws -> T) throws -> T {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fuzz-\(UUID().uuidString)")
  defer { try? FileManager.default.removeItem(at: folder) }
  return try body(folder)
}

private func name(_ id: String) -> DocumentName { ParentName(rootOf: database).collection("c").document(id) }

/// Reads and changes every table.
private func useEveryTable(_ store: inout LocalStore) throws {
  let parent = ParentName(rootOf: database)
  let ordered = ClientQuery(
    ModelQuery(
      parent: parent,
      StructuredQuery(from: [.init("c")], orderBy: [.init(.init(field: "v"), .ascending)], limit: 3)))
  let all = ClientQuery(ModelQuery(parent: parent, StructuredQuery(from: [.init("c")])))
  if let index = FieldIndex(collectionID: "c", segments: [.init(field: .init(field: "v"), kind: .value)]) {
    try store.configure([index])
  }
  for query in [ordered, all] { _ = try store.execute(query, usePreviousResults: true) }
  let target = try store.allocate(all.target)
  var event = RemoteEvent(version: .init(microseconds: 50))
  for number in 0..<5 {
    event.documents[name("d\(number)")] = CachedDocument(
      found: name("d\(number)"), fields: ["v": .integer(Int64(number))], version: .init(microseconds: 50),
      createTime: .epoch)
  }
  event.targetChanges[target.id] = TargetChange(
    resumeToken: [1], isCurrent: true, added: Set(event.documents.keys))
  _ = try store.apply(event)
  _ = try store.write([Write(.update(name("d1"), fields: ["x": .integer(1)]))], at: .epoch)
  // A damaged queue may have no end, so the number of steps is bounded.
  for _ in 0..<100 {
    guard let batch = try store.nextBatch(after: nil) else { break }
    _ = try store.reject(batch)
  }
  for user in ["ann", nil] as [UserID] { _ = try store.switchUser(to: user) }
  try store.release(target.id)
  try store.collectGarbage(above: 0, share: 0.5)
  _ = try store.read(name("d1"))
}
