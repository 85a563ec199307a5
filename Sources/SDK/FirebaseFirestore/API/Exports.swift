// Importing FirebaseFirestore is enough to use timestamps, as with Apple's SDK.

@_exported public import class FirebaseCore.Timestamp
