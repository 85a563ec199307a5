// Exports authentication from `import Firebase`. No name of it is also a name of a database.

@_exported import FirebaseAuth
