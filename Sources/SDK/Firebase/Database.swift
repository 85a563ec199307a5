// What `import Firebase` gives of the Realtime Database. Type by type, because both databases have a
// `ServerTimestamp`: exporting both modules whole would make that name ambiguous. As with Apple's
// umbrella, an explicit import of one product decides which of the two is meant.

@_exported import FirebaseCore
@_exported import class FirebaseDatabase.DataSnapshot
@_exported import enum FirebaseDatabase.DataEventType
@_exported import class FirebaseDatabase.Database
@_exported import typealias FirebaseDatabase.DatabaseCompletion
@_exported import typealias FirebaseDatabase.DatabaseHandle
@_exported import class FirebaseDatabase.DatabaseQuery
@_exported import class FirebaseDatabase.DatabaseReference
@_exported import class FirebaseDatabase.MutableData
@_exported import class FirebaseDatabase.ServerValue
@_exported import class FirebaseDatabase.TransactionResult
@_exported import class FirebaseSharedSwift.FirebaseDataDecoder
@_exported import class FirebaseSharedSwift.FirebaseDataEncoder
