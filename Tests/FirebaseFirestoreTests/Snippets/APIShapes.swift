// swift-format-ignore-file
// Calls every public method of Cloud Firestore's Swift API in the forms that apps use: with and without
// trailing closures, default arguments, unused results and async. No function runs. The test is that the file
// compiles without a warning.

import FirebaseCore
import FirebaseFirestore
import FirebaseSharedSwift
import Foundation

private struct City: Codable, Hashable, Sendable {
  @DocumentID var id: String?
  @ServerTimestamp var updated: Timestamp?
  @ServerTimestamp var date: Date?
  @ExplicitNull var mayor: String?
  var place: GeoPoint
  var parent: DocumentReference?
  var embedding: VectorValue?
}

private func instances(app: FirebaseApp) {
  Firestore.firestore()
  let db: Firestore = Firestore.firestore(app: app)
  Firestore.firestore(database: "other")
  Firestore.firestore(app: app, database: "other")
  let settings: FirestoreSettings = db.settings
  settings.host = "localhost:8080"
  settings.isSSLEnabled = false
  settings.dispatchQueue = .main
  settings.isPersistenceEnabled = true
  settings.cacheSizeBytes = FirestoreCacheSizeUnlimited
  settings.cacheSettings = MemoryCacheSettings()
  settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
  settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: 2_000_000))
  settings.cacheSettings = PersistentCacheSettings()
  settings.cacheSettings = PersistentCacheSettings(sizeBytes: 100 * 1024 * 1024 as NSNumber)
  db.settings = settings
  Firestore.enableLogging(true)
  db.useEmulator(withHost: "localhost", port: 8080)
  let _: FirebaseApp = db.app
  let manager: PersistentCacheIndexManager? = db.persistentCacheIndexManager
  manager?.enableIndexAutoCreation()
  manager?.disableIndexAutoCreation()
  manager?.deleteAllIndexes()
  let codes: [FirestoreErrorCode.Code] = [.OK, .cancelled, .unavailable, .internal]
  _ = (codes, FirestoreErrorDomain, FirestoreErrorCode(.notFound, userInfo: [:]).errorUserInfo)
}

private func lifecycle(_ db: Firestore, data: Data, stream: InputStream) {
  db.enableNetwork()
  db.enableNetwork { (error: Error?) in _ = error }
  db.disableNetwork()
  db.disableNetwork { _ in }
  db.clearPersistence()
  db.clearPersistence { _ in }
  db.terminate()
  db.terminate { _ in }
  db.waitForPendingWrites { _ in }
  db.addSnapshotsInSyncListener {}
  db.setIndexConfiguration("{}")
  db.setIndexConfiguration("{}") { _ in }
  db.setIndexConfiguration(stream)
  db.setIndexConfiguration(stream) { _ in }
  let task: LoadBundleTask = db.loadBundle(data)
  db.loadBundle(data) { (progress: LoadBundleTaskProgress?, error: Error?) in _ = (progress?.bytesLoaded, error) }
  db.loadBundle(stream)
  db.loadBundle(stream) { _, _ in }
  let handle: LoadBundleObserverHandle = task.addObserver { progress in
    switch progress.state {
    case .error, .inProgress, .success: break
    }
    _ = (progress.documentsLoaded, progress.totalDocuments, progress.totalBytes)
  }
  task.removeObserverWith(handle: handle)
  task.removeAllObservers()
  db.getQuery(named: "q") { (query: Query?) in _ = query }
}

private func lifecycleAsync(_ db: Firestore, data: Data) async throws {
  try await db.enableNetwork()
  try await db.disableNetwork()
  try await db.clearPersistence()
  try await db.waitForPendingWrites()
  try await db.terminate()
  try await db.setIndexConfiguration("{}")
  let progress: LoadBundleTaskProgress = try await db.loadBundle(data)
  let query: Query? = await db.getQuery(named: "q")
  _ = (progress, query)
}

private func documents(_ db: Firestore) {
  let cities: CollectionReference = db.collection("cities")
  _ = (cities.collectionID, cities.path, cities.parent?.path)
  let a: DocumentReference = cities.document()
  let b = cities.document("b")
  let c = db.document("cities/c")
  _ = (a.documentID, a.path, a.parent, a.firestore, a.collection("sights"), b == c, Set([a, b]))
  a.setData(["n": 1])
  a.setData(["n": 1], merge: true)
  a.setData(["n": 1], mergeFields: ["n", FieldPath(["a", "b"])])
  a.setData(["n": 1]) { error in _ = error }
  a.setData(["n": 1], merge: true) { _ in }
  a.setData(["n": 1], mergeFields: ["n"]) { _ in }
  a.setData(["n": 1], completion: nil)
  a.updateData(["a.b": 1, FieldPath(["x.y"]): 2])
  a.updateData(["n": FieldValue.increment(Int64(1)), "m": FieldValue.increment(1.5)]) { _ in }
  let fields: [String: Any] = [
    "gone": FieldValue.delete(), "at": FieldValue.serverTimestamp(), "u": FieldValue.arrayUnion([1, "x"]),
    "r": FieldValue.arrayRemove([1]), "v": FieldValue.vector([1.0, 2.0]), "least": FieldValue.minimum(1.5),
    "most": FieldValue.maximum(Int64(3)), "w": VectorValue([1, 2]).array,
  ]
  a.updateData(fields)
  a.delete()
  a.delete { _ in }
  a.getDocument { (snapshot: DocumentSnapshot?, error: Error?) in
    if let snapshot, snapshot.exists {
      let data: [String: Any]? = snapshot.data()
      _ = (data, snapshot.data(with: .estimate), snapshot.get("a.b"), snapshot[FieldPath(["a"])], snapshot["n"] as? Int)
      _ = (snapshot.get("at", serverTimestampBehavior: .previous), snapshot.documentID, snapshot.reference)
      _ = (snapshot.metadata.hasPendingWrites, snapshot.metadata.isFromCache)
    }
  }
  a.getDocument(source: .cache) { _, _ in }
  let listener: any ListenerRegistration = a.addSnapshotListener { snapshot, error in _ = (snapshot, error) }
  a.addSnapshotListener(includeMetadataChanges: true) { _, _ in }
  a.addSnapshotListener(options: SnapshotListenOptions().withIncludeMetadataChanges(true).withSource(.cache)) { _, _ in }
  listener.remove()
  var reference: DocumentReference? = nil
  reference = cities.addDocument(data: ["n": 1]) { err in _ = (err, reference?.documentID) }
  cities.addDocument(data: ["n": 1])
}

private func documentsAsync(_ db: Firestore) async throws {
  let a = db.document("cities/a")
  try await a.setData(["n": 1])
  try await a.setData(["n": 1], merge: true)
  try await a.setData(["n": 1], mergeFields: ["n"])
  try await a.updateData(["n": 2])
  try await a.delete()
  let snapshot: DocumentSnapshot = try await a.getDocument()
  try await a.getDocument(source: .server)
  try await db.collection("cities").addDocument(data: ["n": 1])
  for try await snapshot in a.snapshots { _ = snapshot.exists }
  for try await snapshot in a.snapshots(includeMetadataChanges: true) { _ = snapshot.exists }
  do { _ = try await a.getDocument(as: City.self) } catch FirestoreErrorCode.notFound {} catch let error as FirestoreErrorCode {
    _ = error.code == .unavailable
  }
  _ = snapshot
}

private func queries(_ db: Firestore, at snapshot: DocumentSnapshot) {
  let cities = db.collection("cities")
  let path = FieldPath(["a", "b"])
  let all: [Query] = [
    cities.whereField("a", isEqualTo: 1), cities.whereField(path, isEqualTo: true),
    cities.whereField("a", isNotEqualTo: 1), cities.whereField(path, isNotEqualTo: 1),
    cities.whereField("a", isLessThan: 1), cities.whereField(path, isLessThan: 1),
    cities.whereField("a", isLessThanOrEqualTo: 1), cities.whereField(path, isLessThanOrEqualTo: 1),
    cities.whereField("a", isGreaterThan: 1), cities.whereField(path, isGreaterThan: 1),
    cities.whereField("a", isGreaterThanOrEqualTo: 1), cities.whereField(path, isGreaterThanOrEqualTo: 1),
    cities.whereField("a", arrayContains: 1), cities.whereField(path, arrayContains: 1),
    cities.whereField("a", arrayContainsAny: [1]), cities.whereField(path, arrayContainsAny: [1]),
    cities.whereField("a", in: [1]), cities.whereField(path, in: [1]),
    cities.whereField("a", notIn: [1]), cities.whereField(path, notIn: [1]),
    cities.whereField(FieldPath.documentID(), isEqualTo: "x"),
    cities.whereFilter(.orFilter([.whereField("a", isEqualTo: 1), .andFilter([.whereField("b", isGreaterOrEqualTo: 2), .whereField(path, in: [3])])])),
    cities.order(by: "a"), cities.order(by: path), cities.order(by: "a", descending: true), cities.order(by: path, descending: false),
    cities.limit(to: 3), cities.order(by: "a").limit(toLast: 3),
    cities.start(atDocument: snapshot), cities.start(afterDocument: snapshot), cities.end(atDocument: snapshot), cities.end(beforeDocument: snapshot),
    cities.order(by: "a").start(at: [1]), cities.order(by: "a").start(after: [1]), cities.order(by: "a").end(at: [1]), cities.order(by: "a").end(before: [1]),
    db.collectionGroup("sights"),
  ]
  let query = all[0]
  _ = (query.firestore, query == all[1])
  query.getDocuments { (snapshot: QuerySnapshot?, error: Error?) in
    guard let snapshot else { return print("Error: \(error!)") }
    for document in snapshot.documents { print("\(document.documentID) => \(document.data())") }
    snapshot.documentChanges.forEach { diff in
      switch diff.type {
      case .added, .modified, .removed: _ = (diff.oldIndex, diff.newIndex, diff.document.data(with: .none))
      }
    }
    _ = (snapshot.count, snapshot.isEmpty, snapshot.query, snapshot.metadata, snapshot.documentChanges(includeMetadataChanges: true))
  }
  query.getDocuments(source: .server) { _, _ in }
  query.addSnapshotListener { _, _ in }
  query.addSnapshotListener(includeMetadataChanges: true) { _, _ in }
  query.addSnapshotListener(options: SnapshotListenOptions()) { _, _ in }
  let aggregate: AggregateQuery = query.aggregate([.count(), .sum("n"), .average("n"), .sum(path), .average(path)])
  aggregate.getAggregation(source: .server) { (result: AggregateQuerySnapshot?, error: Error?) in
    _ = (result?.count.intValue, result?.get(.sum("n")) as? NSNumber, result?.query)
  }
  _ = aggregate.query
}

private func queriesAsync(_ query: Query) async throws {
  let snapshot: QuerySnapshot = try await query.getDocuments()
  try await query.getDocuments(source: .cache)
  let count: NSNumber = try await query.count.getAggregation(source: .server).count
  for try await snapshot in query.snapshots { _ = snapshot.count }
  for try await snapshot in query.snapshots(includeMetadataChanges: true) { _ = snapshot.count }
  _ = (snapshot, count)
}

private func batchesAndTransactions(_ db: Firestore, _ a: DocumentReference) {
  let batch: WriteBatch = db.batch()
  batch.setData(["n": 1], forDocument: a).setData(["n": 1], forDocument: a, merge: true)
    .setData(["n": 1], forDocument: a, mergeFields: ["n"]).updateData(["n": 1], forDocument: a).deleteDocument(a)
  batch.commit()
  batch.commit { error in _ = error }
  db.runTransaction({ (transaction, errorPointer) -> Any? in
    let snapshot: DocumentSnapshot
    do {
      try snapshot = transaction.getDocument(a)
    } catch let fetchError as NSError {
      errorPointer?.pointee = fetchError
      return nil
    }
    guard let n = snapshot.data()?["n"] as? Int else {
      errorPointer?.pointee = NSError(domain: "AppErrorDomain", code: -1, userInfo: [NSLocalizedDescriptionKey: "n"])
      return nil
    }
    transaction.updateData(["n": n + 1], forDocument: a)
    transaction.setData(["n": 1], forDocument: a).setData(["n": 1], forDocument: a, merge: true)
    transaction.setData(["n": 1], forDocument: a, mergeFields: ["n"])
    transaction.deleteDocument(a)
    return n
  }) { (object, error) in
    if let error = error { print("Transaction failed: \(error)") } else { print(object!) }
  }
  let options = TransactionOptions()
  options.maxAttempts = 3
  db.runTransaction(with: options, block: { _, _ in nil }) { _, _ in }
  db.runTransaction(with: nil, block: { _, _ in nil }, completion: { _, _ in })
}

private func batchesAndTransactionsAsync(_ db: Firestore, _ a: DocumentReference) async throws {
  try await db.batch().commit()
  let value = try await db.runTransaction { transaction, errorPointer in
    transaction.updateData(["n": 1], forDocument: a)
    return 1
  }
  _ = value as? Int
}

private func codable(_ db: Firestore, _ snapshot: QueryDocumentSnapshot, _ city: City) throws {
  let a = db.document("cities/a")
  let encoder = Firestore.Encoder()
  encoder.dateEncodingStrategy = .timestamp
  encoder.dataEncodingStrategy = .blob
  encoder.keyEncodingStrategy = .convertToSnakeCase
  encoder.nonConformingFloatEncodingStrategy = .throw
  encoder.userInfo = [:]
  let data: [String: Any] = try encoder.encode(city)
  let decoder = Firestore.Decoder()
  decoder.dateDecodingStrategy = .timestamp
  decoder.keyDecodingStrategy = .convertFromSnakeCase
  _ = try decoder.decode(City.self, from: data)
  _ = try decoder.decode(City.self, from: data, in: a)
  _ = try snapshot.data(as: City.self)
  _ = try snapshot.data(as: City?.self, with: .estimate, decoder: decoder)
  a.getDocument(as: City.self) { (result: Result<City, Error>) in _ = result }
  a.getDocument(as: City.self, with: .none, decoder: decoder, source: .cache) { _ in }
  try a.setData(from: city)
  try a.setData(from: city, encoder: encoder) { _ in }
  try a.setData(from: city, merge: true)
  try a.setData(from: city, merge: true, encoder: encoder) { _ in }
  try a.setData(from: city, mergeFields: ["mayor"])
  let new: DocumentReference = try db.collection("cities").addDocument(from: city)
  try db.collection("cities").addDocument(from: city) { _ in }
  try db.batch().setData(from: city, forDocument: new).setData(from: city, forDocument: new, merge: true)
    .setData(from: city, forDocument: new, mergeFields: ["mayor"])
  do { _ = try snapshot.data(as: City.self) } catch DecodingError.keyNotFound {} catch FirestoreDecodingError.decodingIsNotSupported {} catch FirestoreEncodingError.encodingIsNotSupported {}
}

private func values() {
  let point = GeoPoint(latitude: 1, longitude: 2)
  _ = (point.latitude, point.longitude, point == GeoPoint(latitude: 1, longitude: 2))
  let stamp = Timestamp(date: Date())
  _ = (stamp.dateValue(), stamp.seconds, stamp.nanoseconds, stamp.compare(Timestamp()) == .orderedAscending)
}
