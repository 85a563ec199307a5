// Exports the Realtime Database from `import Firebase`, type by type. Both databases have a `ServerTimestamp`, which
// exporting both modules would make ambiguous. As with Apple's umbrella, an explicit import of one product resolves it.

@_exported import FirebaseCore
@_exported import enum FirebaseDatabase.CachePersistenceError
@_exported import class FirebaseDatabase.DataSnapshot
@_exported import enum FirebaseDatabase.DataEventType
@_exported import class FirebaseDatabase.Database
@_exported import typealias FirebaseDatabase.DatabaseCompletion
@_exported import typealias FirebaseDatabase.DatabaseHandle
@_exported import let FirebaseDatabase.DatabasePersistenceErrorDomain
@_exported import class FirebaseDatabase.DatabaseQuery
@_exported import class FirebaseDatabase.DatabaseReference
@_exported import class FirebaseDatabase.MutableData
@_exported import class FirebaseDatabase.ServerValue
@_exported import class FirebaseDatabase.TransactionResult
@_exported import class FirebaseSharedSwift.FirebaseDataDecoder
@_exported import class FirebaseSharedSwift.FirebaseDataEncoder
