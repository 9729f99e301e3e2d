"""Two speakers, 5 to 20 s each, and words that a recogniser can know."""

from __future__ import annotations

DIALOGUES = """
[S1] Good morning. Did you sleep well? [S2] Yes, thank you. And you? [S1] Not really, the wind kept me awake. [S2]
[S1] Have you seen my keys? [S2] They are on the kitchen table, under the newspaper. [S1] Oh, thank you so much. [S2]
[S1] The train leaves at nine. [S2] Then we should go now. It takes half an hour to the station. [S1]
[S1] What would you like to eat? [S2] Soup, if there is any left from yesterday. [S1] There is, and fresh bread too. [S2]
[S1] I heard that you bought a boat. [S2] A small one. We want to sail along the coast this summer. [S1] That sounds wonderful. [S2]
[S1] Can you help me carry this box? [S2] Of course. What is in it? It is very heavy. [S1] Only books, I promise. [S2]
[S1] How was the film last night? [S2] Too long, but the music was beautiful. [S1] Then I will wait and see it at home. [S2]
[S1] It has been raining for three days now. [S2] The garden needs it. The ground was as dry as a bone. [S1]
[S1] Do you remember our old teacher? [S2] The one with the red hat? Of course I do. [S1] I met her at the market today. [S2]
[S1] Please turn the music down a little. [S2] Sorry, I did not know that you were working. [S1] No problem at all. [S2]
[S1] Where shall we meet? [S2] At the bridge, where the river is wide. I will bring my brother. [S1] Good, I look forward to it. [S2]
[S1] My computer does not start any more. [S2] Did you try another power cable? [S1] I did, and nothing happens at all. [S2]
[S1] This cake is very good. Did you make it? [S2] My father did. He bakes every Sunday. [S1] Please ask him for the recipe. [S2]
[S1] The doctor says that I should walk more. [S2] Then come with me in the evening. I go around the lake. [S1] I would love to. [S2]
[S1] How much is this lamp? [S2] Forty, and thirty if you take two of them. [S1] One is enough for me, thank you. [S2]
[S1] Is anybody sitting here? [S2] No, please take a seat. The concert will begin in a few minutes. [S1]
[S1] We lost the game again. [S2] But you played much better than last week. [S1] Perhaps we will win the next one. [S2]
[S1] I cannot find the house. [S2] Go past the church and turn left at the old tree. [S1] Now I can see it. Thank you. [S2]
[S1] Tell me what you did on your holiday. [S2] We stayed in the mountains and walked for hours every day. [S1] You look very happy. [S2]
[S1] Good night. Leave the window open, please. [S2] It will be cold, but I like the fresh air as well. [S1]
""".strip().splitlines()  # noqa: E501
