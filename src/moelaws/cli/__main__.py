from moelaws.cli import main

main()
